"""llama.cpp under measurement: the wheel's server, and the native build's server and benchmark program."""

import json
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor

from peers.engine import Engine
from peers.environment import LLAMA_CPP_SOURCE, PINS, Unavailable, native
from peers.llama_server import LlamaServer
from peers.works import PROMPT_TOKENS, decode_figures, mixed_figures, prefill_figures

SLOTS = 32
SLOT_TOKENS = 1280
SETTLING_SECONDS = 1  # that the streams of the mixed work decode alone, before and after
STREAM_TOKENS = 1024  # of each stream of the mixed work, unless its end comes first


class LlamaServerEngine(Engine):
    """All works through the HTTP server. Decode rounds begin from contexts that were computed before and are kept, each
    in its slot."""

    def __init__(self, build, model, threads, timeout_seconds):
        self.name = f"llama.cpp {build}"
        self.how = f"llama.cpp, {PINS[0] if build == 'wheel' else LLAMA_CPP_SOURCE + ' built natively'}"
        self.timeout_seconds = timeout_seconds
        self.start = lambda: LlamaServer(build, model, threads, SLOTS, SLOT_TOKENS, timeout_seconds)
        self.server = None
        self.prompts = []

    def begin(self, work):
        if self.server is None:
            self.server = self.start()
        if work.kind == "prefill":
            self.measure(work)
        self.prompts = [self.server.prompt(work.context) for _ in range(work.batch)]
        if work.kind == "decode":
            self.all_at_once(lambda slot: self.server.complete(self.prompts[slot], 1, slot, cached=True), work.batch)

    def all_at_once(self, call, count):
        """The results of call(0), call(1)... on a thread each."""
        with ThreadPoolExecutor(count) as pool:
            return list(pool.map(call, range(count)))

    def measure(self, work):
        if work.kind == "prefill":
            start = time.monotonic()
            return prefill_figures(start, self.server.complete(self.server.prompt(work.context), 1))
        if work.kind == "decode":
            return decode_figures(self.all_at_once(
                lambda slot: self.server.complete(self.prompts[slot], work.tokens, slot, cached=True), work.batch))
        return self.measure_mixed(work)

    def measure_mixed(self, work):
        stop = threading.Event()
        begun = threading.Barrier(work.batch + 1, timeout=self.timeout_seconds)

        def decode(slot):
            # One token first: the window opens when all contexts are computed.
            try:
                self.server.complete(self.prompts[slot], 1, slot, cached=True)
                begun.wait()
            except (Unavailable, threading.BrokenBarrierError) as error:
                begun.abort()
                raise Unavailable(f"{self.name}: the streams did not begin: {error}") from error
            return self.server.complete(self.prompts[slot], STREAM_TOKENS, slot, cached=True, stop=stop)

        with ThreadPoolExecutor(1) as pool:
            decoding = pool.submit(self.all_at_once, decode, work.batch)
            try:
                begun.wait()
                time.sleep(SETTLING_SECONDS)
                begin = time.monotonic()
                for _ in range(work.prompts):
                    end = self.server.complete(self.server.prompt(PROMPT_TOKENS), 1)[0][0]
                time.sleep(SETTLING_SECONDS)
            except threading.BrokenBarrierError:
                pass  # a stream failed, and tells so below
            finally:
                stop.set()
            return mixed_figures(decoding.result(), work.prompts, begin, end)

    def close(self):
        if self.server is not None:
            self.server.close()
            self.server = None


class LlamaNativeEngine(LlamaServerEngine):
    """Prefill and decode by llama.cpp's own benchmark program, which has no server's cost; the rest as above."""

    def __init__(self, model, threads, timeout_seconds):
        super().__init__("native", model, threads, timeout_seconds)
        self.model = model
        self.threads = threads

    def begin(self, work):
        if work.kind == "mixed":
            super().begin(work)

    def measure(self, work):
        if work.kind == "mixed":
            return super().measure(work)
        # A prompt is computed once and its context copied to the others; each keeps a copy of its own.
        stream_tokens = -(-(work.context + work.tokens + 1) // 256) * 256
        command = [native("llama-batched-bench"), "-m", self.model, "-t", self.threads, "-tb", self.threads,
                   "-c", stream_tokens * work.batch, "-npp", work.context, "-ntg", f"{work.tokens},{work.tokens}",
                   "-npl", work.batch, "-pps", "-no-kvu", "--output-format", "jsonl"]
        try:
            done = subprocess.run([str(part) for part in command], capture_output=True, text=True,
                                  timeout=self.timeout_seconds)
        except subprocess.TimeoutExpired as error:
            raise Unavailable(f"{self.name} did not end within {self.timeout_seconds:g} s") from error
        rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        if len(rows) != 2:
            raise Unavailable(f"{self.name} ended with exit code {done.returncode} and {len(rows)} of 2 results")
        return {"tokens_per_second": rows[1]["speed_pp" if work.kind == "prefill" else "speed_tg"]}

    def end(self, work):
        self.close()
