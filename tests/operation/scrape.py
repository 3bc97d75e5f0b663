"""A real Prometheus scrapes the server under load: its queries give what GetCacheStats says, and promtool finds nothing
but the colons of vLLM's names.
"""
import argparse
import asyncio
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

from load import Outcomes, grpc_load
from quire_client import AsyncClient
from serving import Serving

COLON = "metric names should not contain ':'"
QUERIES = {  # a field of CacheStats for each
    "quire_kv_pool_bytes": "pool_bytes",
    "quire_kv_used_bytes": "used_bytes",
    "quire_kv_cached_bytes": "cached_bytes",
    "quire_kv_free_bytes": "free_bytes",
    "quire_memory_budget_bytes": "budget_bytes",
    "vllm:num_preemptions_total": "preemptions",
    "vllm:generation_tokens_total": "output_tokens",
}


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Prometheus:
    def __init__(self, target: str, folder: str) -> None:
        config = pathlib.Path(folder, "prometheus.yml")
        config.write_text(f"global: {{scrape_interval: 1s}}\n"
                          f"scrape_configs: [{{job_name: quire, static_configs: [{{targets: ['{target}']}}]}}]\n")
        self.address = f"127.0.0.1:{free_port()}"
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={self.address}", "--log.level=error"])

    def __enter__(self) -> "Prometheus":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()

    def query(self, expression: str) -> float | None:
        url = f"http://{self.address}/api/v1/query?" + urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                result = json.load(response)["data"]["result"]
        except (urllib.error.URLError, ConnectionError):
            return None
        return float(result[0]["value"][1]) if result else None

    def wait_for(self, expression: str) -> float:
        for _ in range(600):
            value = self.query(expression)
            if value is not None:
                return value
            time.sleep(0.1)
        raise RuntimeError(f"Prometheus has no value of {expression}")


def lint(serving: Serving) -> list[str]:
    with urllib.request.urlopen(f"http://{serving.http_address}/metrics") as response:
        text = response.read()
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, check=False)
    lines = (done.stdout + done.stderr).decode().splitlines()
    return [f"promtool: {line}" for line in lines if line and not line.endswith(COLON)]


async def run(arguments: argparse.Namespace) -> list[str]:
    findings: list[str] = []
    with (tempfile.TemporaryDirectory() as folder,
          Serving(arguments.server, arguments.model, "--memory-budget", "1GiB", "--log-level", "warning") as serving,
          Prometheus(serving.http_address, folder) as prometheus):
        outcomes = Outcomes()
        async with AsyncClient(serving.address) as client:
            async with grpc_load(serving.address, 24, 1, outcomes):
                await asyncio.to_thread(prometheus.wait_for, "quire_kv_used_bytes > 0")
                await asyncio.to_thread(prometheus.wait_for, "rate(vllm:generation_tokens_total[5s]) > 0")
                ttft = "histogram_quantile(0.5, rate(vllm:time_to_first_token_seconds_bucket[10s]))"
                median = await asyncio.to_thread(prometheus.wait_for, f"{ttft} > 0")
            print(f"scrape: under load the median time to the first token is {median:.3f} s; calls: {outcomes}")
            # Nothing changes any more: the next scrape sees what this call sees.
            stats = await client.cache_stats()
            await asyncio.sleep(3)
            for query, field in QUERIES.items():
                value = prometheus.query(query)
                print(f"scrape: {query} {value:.0f}, GetCacheStats {getattr(stats, field)}")
                if value != getattr(stats, field):
                    findings.append(f"{query} is {value}, and {field} {getattr(stats, field)}")
        findings += lint(serving)
    return findings


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server")
    parser.add_argument("model")
    for tool in ("prometheus", "promtool"):
        if shutil.which(tool) is None:
            sys.exit(f"scrape: no {tool}: apt-get install prometheus")
    found = asyncio.run(run(parser.parse_args()))
    if found:
        sys.exit("scrape: " + "; ".join(found))
