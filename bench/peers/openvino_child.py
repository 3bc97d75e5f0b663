"""OpenVINO GenAI's continuous batching in a process of its own: questions on standard input, answers on standard
output.

usage: openvino_child.py MODEL THREADS

All in its default mode but for the threads and the prefix cache. The pipeline is stepped from here, so that a stream
can wait between rounds with its context kept.
"""

import json
import os
import random
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
from peers.works import PROMPT_TOKENS, Work, decode_figures, mixed_figures, prefill_figures  # noqa: E402

MANY_TOKENS = 4096  # more than any stream comes to make


class Stream:
    def __init__(self, handle, sent):
        self.handle = handle
        self.sent = sent
        self.times = []  # (time, tokens so far)

    def take(self, now):
        count = self.times[-1][1] if self.times else 0
        while self.handle.can_read():
            count += sum(len(output.generated_ids) for output in self.handle.read().values())
        if count > (self.times[-1][1] if self.times else 0):
            self.times.append((now, count))


class Pipeline:
    def __init__(self, model, threads):
        import openvino_genai

        self.genai = openvino_genai
        scheduler = openvino_genai.SchedulerConfig()
        scheduler.enable_prefix_caching = False
        self.pipeline = openvino_genai.ContinuousBatchingPipeline(
            model, scheduler, "CPU", {"INFERENCE_NUM_THREADS": threads})
        self.random = random.Random(1)
        self.next_id = 0
        self.streams = []

    def add(self, prompt_tokens, max_tokens):
        import numpy
        import openvino

        config = self.genai.GenerationConfig()
        config.max_new_tokens = max_tokens
        config.ignore_eos = True
        config.do_sample = False
        ids = numpy.array([[self.random.randrange(100, 49000) for _ in range(prompt_tokens)]], dtype=numpy.int64)
        self.next_id += 1
        sent = time.monotonic()
        stream = Stream(self.pipeline.add_request(self.next_id, openvino.Tensor(ids), config), sent)
        self.streams.append(stream)
        return stream

    def step(self):
        self.pipeline.step()
        now = time.monotonic()
        for stream in self.streams:
            stream.take(now)

    def stop_all(self):
        for stream in self.streams:
            stream.handle.stop()
        while self.pipeline.has_non_finished_requests():
            self.pipeline.step()
        self.streams.clear()

    def begin(self, work):
        self.stop_all()
        if work.kind == "prefill":
            self.measure_prefill(work)
        if work.kind == "decode":
            self.add_streams(work)

    def add_streams(self, work):
        for _ in range(work.batch):
            self.add(work.context, MANY_TOKENS)
        while not all(stream.times for stream in self.streams):
            self.step()

    def measure_prefill(self, work):
        stream = self.add(work.context, 1)
        while not stream.times:
            self.step()
        self.streams.clear()
        return prefill_figures(stream.sent, stream.times)

    def measure_decode(self, work):
        for stream in self.streams:
            stream.times = stream.times[-1:]
        self.step()  # the first one after a pause
        for stream in self.streams:
            stream.times = stream.times[-1:]
        for _ in range(work.tokens):
            self.step()
        return decode_figures([stream.times for stream in self.streams])

    def measure_mixed(self, work):
        self.stop_all()
        self.add_streams(work)
        decoding = list(self.streams)
        begin = time.monotonic()
        for _ in range(work.prompts):
            prompt = self.add(PROMPT_TOKENS, 1)
            while not prompt.times:
                self.step()
            end = prompt.times[0][0]
        figures = mixed_figures([stream.times for stream in decoding], work.prompts, begin, end)
        self.stop_all()
        return figures


def properties(pipeline):
    """What it runs with, as far as it tells."""
    import openvino

    core = openvino.Core()
    precision = core.get_property("CPU", "INFERENCE_PRECISION_HINT").get_type_name()
    cache = core.get_property("CPU", "KV_CACHE_PRECISION").get_type_name()
    return f"OpenVINO GenAI {pipeline.genai.__version__}, computed in {precision}, KV cache {cache}"


def answer(pipeline, question):
    work = Work(**question["work"])
    if question["do"] == "begin":
        pipeline.begin(work)
        return {"how": properties(pipeline)}
    if question["do"] == "end":
        pipeline.stop_all()
        return {}
    if work.kind == "prefill":
        return {"figures": pipeline.measure_prefill(work)}
    if work.kind == "decode":
        return {"figures": pipeline.measure_decode(work)}
    return {"figures": pipeline.measure_mixed(work)}


def main():
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what the libraries print must not mix with the answers
    model, threads = sys.argv[1], int(sys.argv[2])
    pipeline = None
    for line in sys.stdin:
        try:
            if pipeline is None:
                pipeline = Pipeline(model, threads)
            reply = answer(pipeline, json.loads(line))
        except Exception as error:  # whatever the library throws is told, and the others go on
            reply = {"error": (str(error).strip().splitlines() or [type(error).__name__])[0]}
        print(json.dumps(reply), file=out, flush=True)


if __name__ == "__main__":
    main()
