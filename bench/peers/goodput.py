"""Goodput under limits on TTFT and TPOT: quire over gRPC beside llama.cpp's server over HTTP, loaded by one client."""

import json
import re
import statistics
import subprocess

from peers.environment import Unavailable, say
from peers.llama_server import LlamaServer

RATES = (1, 1.5, 2, 3, 4, 6, 8, 12, 16, 24)  # requests per second
HELD_SHARE = 0.9  # of the requests within the limits: then a server holds a rate
PROMPT_TOKENS = 96
OUTPUT_TOKENS = 32
REQUEST_SECONDS = 60  # a request that takes longer is given up, so that a server behind its load ends too
SLOTS = 16
SLOT_TOKENS = 1024


class QuireServer:
    """quire-server that is ready, without prefix cache."""

    def __init__(self, programs, model, threads, timeout_seconds, flags):
        command = [programs / "quire-server", "--model", model, "--threads", threads, "--grpc-listen", "127.0.0.1:0",
                   "--no-enable-prefix-caching", "--log-level", "error", *flags]
        self.process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True)
        last_line = "no output"
        for line in self.process.stderr:
            ready = re.match(r"quire-server: ready on (\S+)$", line)
            if ready:
                self.flags = ["--address", ready.group(1)]
                return
            last_line = line.strip()
        raise Unavailable(f"quire-server does not start: {last_line}")

    def close(self):
        self.process.terminate()
        self.process.communicate()


class Goodput:
    def __init__(self, programs, num_requests, num_rounds, timeout_seconds):
        self.programs = programs
        self.num_requests = num_requests
        self.num_rounds = num_rounds
        self.timeout_seconds = timeout_seconds

    def load(self, flags, rate, seed, limits):
        """What `quire load` reports."""
        command = [self.programs / "quire", "load", "--json", "--timeout", REQUEST_SECONDS,
                   "--requests", self.num_requests, "--rate", rate, "--seed", seed, "--prompt-tokens", PROMPT_TOKENS,
                   "--prompt-sigma", 0.5, "--max-prompt-tokens", 512,
                   "--output-tokens", OUTPUT_TOKENS, "--output-sigma", 0.3, "--max-output-tokens", 128, *limits, *flags]
        try:
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                                  timeout=self.timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"a load of {rate} requests/s did not end within {self.timeout_seconds:g} s") from error
        if not done.stdout.startswith("{"):
            raise Unavailable(f"quire load failed: {done.stderr.strip()}")
        report = json.loads(done.stdout)
        if report.get("by_status", {}).get("OK", 0) == 0:
            raise Unavailable(f"no request of the load succeeded: {report.get('by_status', report)}")
        return report

    def limits(self, server):
        """TTFT and TPOT that the server just holds at 1 request/s: the worse of the rounds' 95th percentiles, so that a
        little noise does not make it miss them."""
        reports = [self.load(server.flags, RATES[0], seed, []) for seed in range(1, self.num_rounds + 1)]
        return tuple(max(report[key]["p95"] for report in reports)
                     for key in ("time_to_first_token_seconds", "seconds_per_output_token"))

    def goodput(self, name, server, limits):
        """Good requests per second of each round, at the highest rate that the server holds, or else at the first."""
        flags = ["--ttft-limit", limits[0], "--tpot-limit", limits[1]]
        best = None
        for rate in RATES:
            reports = [self.load(server.flags, rate, seed, flags) for seed in range(1, self.num_rounds + 1)]
            shares = [report["good_requests"] / report["requests"] for report in reports]
            say(f"goodput, {name}, {rate:g} requests/s: {statistics.median(shares):.0%} within the limits")
            is_held = statistics.median(shares) >= HELD_SHARE
            if is_held or best is None:
                best = [rate * share for share in shares]
            if not is_held:
                break
        return best

    def run(self, build, model, threads, flags):
        """A row of the table and what it stands for."""
        peer_name = f"llama.cpp {build}"
        peer = LlamaServer(build, model, threads, SLOTS, SLOT_TOKENS, self.timeout_seconds)
        peer.flags = ["--http", peer.url, "--http-body", '{"cache_prompt": false}']
        try:
            self.load(peer.flags, RATES[0], 99, [])  # warm
            limits = self.limits(peer)
            theirs = self.goodput(peer_name, peer, limits)
        finally:
            peer.close()
        server = QuireServer(self.programs, model, threads, self.timeout_seconds, flags)
        try:
            self.load(server.flags, RATES[0], 99, [])  # warm
            ours = self.goodput("quire", server, limits)
        finally:
            server.close()
        row = {"work": "goodput", "figure": "requests_per_second", "values": {"quire": ours, peer_name: theirs},
               "limits_seconds": limits}
        if statistics.median(theirs) > 0:
            row["better_peer"] = peer_name
            row["ratio"] = statistics.median(ours) / statistics.median(theirs)
            row["ratio_min"] = min(ours) / max(theirs)
            row["ratio_max"] = max(ours) / min(theirs) if min(theirs) > 0 else row["ratio"]
        note = (f"goodput: Poisson arrivals, prompts of {PROMPT_TOKENS} and answers of {OUTPUT_TOKENS} tokens in the "
                f"median; first token within {1000 * limits[0]:.0f} ms and {1000 * limits[1]:.1f} ms a token, which "
                f"{peer_name} just holds at 1 request/s; the rate counts at which 90 % of the requests do")
        return row, note
