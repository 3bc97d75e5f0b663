"""Health while every seat is taken and all threads compute: each probe is answered SERVING. Prints how long they took."""
import argparse
import asyncio
import sys
import time

from load import Outcomes, grpc_load
from quire_client import AsyncClient
from serving import Serving


async def probe(arguments: argparse.Namespace) -> None:
    with Serving(arguments.server, arguments.model, "--memory-budget", "1GiB") as serving:
        outcomes = Outcomes()
        seconds = []
        answers = set()
        async with AsyncClient(serving.address) as client:
            async with grpc_load(serving.address, num_callers=96, seed=1, outcomes=outcomes):
                while (await client.cache_stats()).requests_running < 48:
                    await asyncio.sleep(0.1)
                for _ in range(arguments.probes):
                    start = time.monotonic()
                    answers.add(await client.health())
                    seconds.append(time.monotonic() - start)
        seconds.sort()
        print(f"health: {len(seconds)} probes at full load, p50 {seconds[len(seconds) // 2] * 1e3:.1f} ms, "
              f"p99 {seconds[len(seconds) * 99 // 100] * 1e3:.1f} ms, most {seconds[-1] * 1e3:.1f} ms, "
              f"all {', '.join(answers)}; calls: {outcomes}")
        if answers != {"SERVING"}:
            sys.exit(f"health: answers were {answers}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server")
    parser.add_argument("model")
    parser.add_argument("--probes", type=int, default=1000)
    asyncio.run(probe(parser.parse_args()))
