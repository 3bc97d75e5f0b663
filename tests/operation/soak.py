"""Mixed load over gRPC and HTTP at twice what the server can take, with a client that kills its connection every second:
memory stays flat, counters are consistent, and there is nothing but answers and typed refusals.
"""
import argparse
import asyncio
import json
import re
import socket
import sys
import threading
import time
import urllib.request

from load import HttpLoad, Outcomes, grpc_load
from quire_client import AsyncClient
from serving import Serving

EXPECTED = {"OK", "RESOURCE_EXHAUSTED", "HTTP 200", "HTTP 429"}
MAX_GROWTH = 0.02  # of the resident memory, from the end of the first tenth on
BUDGET = "1GiB"


class Killer(threading.Thread):
    """Begins a stream, reads some of it, and resets the connection; once a second."""

    def __init__(self, address: str) -> None:
        super().__init__()
        host, port = address.rsplit(":", 1)
        self.endpoint = (host, int(port))
        self.stopping = threading.Event()
        self.num_kills = 0

    def run(self) -> None:
        body = json.dumps({"prompt": "Once upon a time", "max_tokens": 500, "stream": True}).encode()
        head = (f"POST /v1/completions HTTP/1.1\r\nHost: quire\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n").encode()
        while not self.stopping.wait(1):
            with socket.create_connection(self.endpoint, timeout=60) as connection:
                connection.sendall(head + body)
                connection.recv(1000)
                # A reset instead of an orderly end.
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            self.num_kills += 1

    def stop(self) -> None:
        self.stopping.set()
        self.join()


def metric(text: str, name: str) -> float:
    return sum(float(value) for value in re.findall(rf"^{re.escape(name)}(?:{{[^}}]*}})? (\S+)$", text, re.MULTILINE))


def read_metrics(serving: Serving) -> str:
    with urllib.request.urlopen(f"http://{serving.http_address}/metrics") as response:
        return response.read().decode()


async def run(arguments: argparse.Namespace) -> list[str]:
    findings = []
    # 64 seats and 64 places in the queue, and twice as many callers as both.
    with Serving(arguments.server, arguments.model, "--memory-budget", BUDGET, "--max-queued-requests", "64",
                 "--http-max-connections", "128", "--log-level", "warning") as serving:
        outcomes = Outcomes()
        killer = Killer(serving.http_address)
        http_callers = [HttpLoad(serving.http_address, seed, outcomes) for seed in range(64)]
        for thread in [killer, *http_callers]:
            thread.start()
        sizes = []
        seconds = arguments.minutes * 60
        start = time.monotonic()
        async with grpc_load(serving.address, 192, 1, outcomes, stop_when_unavailable=False):
            while time.monotonic() - start < seconds:
                await asyncio.sleep(min(10, seconds / 20))
                sizes.append(serving.resident_bytes())
                if len(sizes) % 6 == 0:
                    print(f"soak: {(time.monotonic() - start) / 60:.1f} min, {sizes[-1] >> 20} MiB, {outcomes}, "
                          f"{killer.num_kills} kills", flush=True)
        for thread in [killer, *http_callers]:
            await asyncio.to_thread(thread.stop)
        await settle(serving)
        findings += check(serving, sizes, outcomes)
        code, _ = serving.terminate(60)
        if code != 0:
            findings.append(f"exit code {code}")
        print(f"soak: {arguments.minutes} min; {outcomes}; {killer.num_kills} kills; "
              f"{min(sizes) >> 20} to {max(sizes) >> 20} MiB resident; the log:\n{serving.log.read_text()[-2000:]}")
    return findings


async def settle(serving: Serving) -> None:
    async with AsyncClient(serving.address) as client:
        for _ in range(600):
            stats = await client.cache_stats()
            if stats.requests_running == 0 and stats.requests_waiting == 0:
                return
            await asyncio.sleep(0.1)


def check(serving: Serving, sizes: list[int], outcomes: Outcomes) -> list[str]:
    findings = []
    metrics = read_metrics(serving)
    for name in ("vllm:num_requests_running", "vllm:num_requests_waiting", "quire_kv_used_bytes", "quire_queued_tokens",
                 "quire_invariant_violations_total", "quire_failed_steps_total"):
        if metric(metrics, name) != 0:
            findings.append(f"{name} is {metric(metrics, name)}, not 0")
    blocks = [metric(metrics, f"quire_kv_{part}_bytes") for part in ("pool", "used", "cached", "free")]
    if blocks[0] != sum(blocks[1:]):
        findings.append(f"pool, used, cached and free bytes do not add up: {blocks}")
    # The server's own first request is none of those that are counted by their end.
    finished, ended = metric(metrics, "quire_finished_requests_total"), metric(metrics, "vllm:request_success_total")
    if finished != ended + 1:
        findings.append(f"the engine has finished {finished} requests, and {ended} ends and one at the start are counted")
    budget = metric(metrics, "quire_memory_budget_bytes")
    if metric(metrics, "quire_process_peak_resident_bytes") > budget:
        findings.append("the budget was passed")
    first = sizes[len(sizes) // 10]
    if max(sizes) > first * (1 + MAX_GROWTH):
        findings.append(f"memory grew from {first} to {max(sizes)} bytes")
    for name in outcomes.counts.keys() - EXPECTED:
        findings.append(f"{outcomes.counts[name]} requests ended with {name}")
    for name in EXPECTED:
        if outcomes.counts[name] == 0:
            findings.append(f"no request ended with {name}")
    return findings


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server")
    parser.add_argument("model")
    parser.add_argument("--minutes", type=float, default=30)
    found = asyncio.run(run(parser.parse_args()))
    if found:
        sys.exit("soak: " + "; ".join(found))
