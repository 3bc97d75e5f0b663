"""SIGTERM under load, again and again: every call has a final status, new ones are told when to come back, the exit code
is 0, and the drain time is kept.
"""
import argparse
import asyncio
import random
import signal
import sys
import time

import grpc
from load import NO_RETRIES, Outcomes, ask_over_grpc, grpc_load
from quire_client import AsyncClient, QuireError
from serving import Serving

DRAIN_SECONDS = 5
MARGIN_SECONDS = 10  # for the machine, beyond the drain time
FINAL = {"OK", "UNAVAILABLE"}


async def late_call_is_refused(client: AsyncClient, serving: Serving) -> str:
    """On a connection that was there before the signal: what a new call is told while the server drains."""
    try:
        await client.generate("late", max_tokens=1)
        return "answered"
    except QuireError as error:
        if error.code != grpc.StatusCode.UNAVAILABLE:
            return error.code.name
        # Without the delay the server was gone already.
        return "UNAVAILABLE with a delay" if error.retry_delay else "UNAVAILABLE without a delay"


async def run_once(arguments: argparse.Namespace, seed: int) -> list[str]:
    findings = []
    outcomes = Outcomes()
    with Serving(arguments.server, arguments.model, "--drain-seconds", str(DRAIN_SECONDS), "--threads", "2",
                 "--memory-budget", "1GiB") as serving:
        async with AsyncClient(serving.address, retry=NO_RETRIES) as late:
            await ask_over_grpc(late, random.Random(seed), Outcomes())
            async with grpc_load(serving.address, num_callers=16, seed=seed, outcomes=outcomes):
                await asyncio.sleep(random.Random(seed).uniform(0.5, 2.0))
                start = time.monotonic()
                serving.process.send_signal(signal.SIGTERM)
                await asyncio.sleep(0.05)
                late_end = await late_call_is_refused(late, serving)
                code = await asyncio.to_thread(serving.process.wait, DRAIN_SECONDS + MARGIN_SECONDS)
                seconds = time.monotonic() - start
    if code != 0:
        findings.append(f"exit code {code}")
    if not late_end.startswith("UNAVAILABLE"):
        findings.append(f"a call after the signal: {late_end}")
    for name in outcomes.counts.keys() - FINAL:
        findings.append(f"a call ended with {name}")
    if outcomes.counts["OK"] == 0:
        findings.append("no call was answered")
    print(f"drain {seed}: {seconds:.1f} s, exit {code}; a late call: {late_end}; calls: {outcomes}", flush=True)
    return findings


def main(arguments: argparse.Namespace) -> None:
    findings = []
    for seed in range(1, arguments.times + 1):
        findings += [f"run {seed}: {finding}" for finding in asyncio.run(run_once(arguments, seed))]
    if findings:
        sys.exit("drain: " + "; ".join(findings))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server")
    parser.add_argument("model")
    parser.add_argument("--times", type=int, default=20)
    main(parser.parse_args())
