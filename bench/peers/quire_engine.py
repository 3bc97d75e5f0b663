"""quire under measurement: quire-bench, a process for each round."""

import json
import subprocess

from peers.engine import Engine
from peers.environment import Unavailable
from peers.works import PROMPT_TOKENS


class QuireEngine(Engine):
    name = "quire"

    def __init__(self, program, model, threads, timeout_seconds, flags):
        self.program = program
        self.common = ["--model", model, "--threads", threads, "--no-probe", "--json", *flags]
        self.timeout_seconds = timeout_seconds

    def measure(self, work):
        streams = ["--batches", work.batch, "--contexts", work.context]
        flags = {
            "prefill": ["--prompt-tokens", work.context, "--runs", 3],
            "decode": [*streams, "--decode-tokens", work.tokens, "--runs", 1],
            "mixed": [*streams, "--prompt-tokens", PROMPT_TOKENS, "--prompts", work.prompts, "--runs", 1],
        }[work.kind]
        report = self.run(work.kind, flags)
        self.how = (f"weights {report['weight_type']}, computed in {report['compute_type']}, "
                    f"KV cache {report['kv_cache_dtype']}")
        row = report["results"][0]
        if work.kind != "mixed":
            return {"tokens_per_second": row["tokens_per_second"]}
        return {
            "gap_p99_ms": row["token_gap_p99_ms"],
            "gap_p50_ms": row["token_gap_p50_ms"],
            "decode_tokens_per_second": row["decode_tokens_per_second"],
            "prefill_tokens_per_second": row["prefill_tokens_per_second"],
        }

    def run(self, command, flags):
        line = [str(part) for part in (self.program, command, *self.common, *flags)]
        try:
            done = subprocess.run(line, capture_output=True, text=True, timeout=self.timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"quire-bench {command} did not end within {self.timeout_seconds:g} s") from error
        if done.returncode != 0:
            message = (done.stderr.strip().splitlines() or ["no output"])[-1]
            raise Unavailable(f"quire-bench {command} failed: {message}")
        return json.loads(done.stdout)
