"""The real binaries with the real model: the memory promise, and answers over a real socket.

usage: real_model_test.py SERVER CLIENT
The model is $QUIRE_TEST_MODEL, else the one scripts/fetch_model puts in place. Without it the tests are skipped, and
fail if CI=true.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
from pathlib import Path

SERVER = ""
CLIENT = ""
HANG_SECONDS = 280  # a bound for a hung process, not a promise
MIB = 1 << 20
# Where an answer's words are compared: its first token wins by 0.08 of a logit, less than what 8-bit inputs move.
BF16 = ["--weight-type", "bf16"]


def model_path():
    folder = os.environ.get("QUIRE_MODEL_DIR", Path.home() / ".cache/quire/models")
    return os.environ.get("QUIRE_TEST_MODEL", str(Path(folder) / "SmolLM2-135M-Instruct.Q4_1.gguf"))


class Serving:
    """A running server, ready; killed at the end of the block if it still runs."""

    def __init__(self, *arguments):
        self.arguments = arguments

    def __enter__(self):
        self.process = subprocess.Popen(
            [SERVER, "--model", model_path(), "--grpc-listen", "127.0.0.1:0", *self.arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            ready = re.match(r"quire-server: ready on (\S+)$", line)
            if ready:
                self.address = ready.group(1)
                break
        else:
            raise AssertionError("not ready: " + "".join(lines))
        # Its log must not fill the pipe.
        self.drain = threading.Thread(target=self.process.stderr.read)
        self.drain.start()
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.drain.join()
        self.process.stderr.close()

    def client(self, *arguments):
        done = subprocess.run([CLIENT, *arguments, "--address", self.address], capture_output=True, text=True,
                              timeout=HANG_SECONDS)
        return done.returncode, done.stdout, done.stderr

    def cache(self):
        code, out, err = self.client("cache", "--json")
        assert code == 0, err
        return json.loads(out)

    def peak_resident_bytes(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024


@unittest.skipUnless(os.path.exists(model_path()) or os.environ.get("CI") == "true", "the real model is not there")
class RealModel(unittest.TestCase):
    def test_answers_and_stops(self):
        with Serving(*BF16) as server:
            question = ["generate", "--chat", "--temperature", "0", "What is the capital of France?"]
            code, out, err = server.client(*question)
            self.assertEqual((code, out.strip()), (0, "The capital of France is Paris."), err)
            code, out, err = server.client("generate", "--stop", "capital of", *question[1:])
            self.assertEqual((code, out.strip()), (0, "The"), err)
            self.assertEqual(int(server.cache()["blocks_used"]), 0)
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(timeout=HANG_SECONDS), 0)

    def test_memory_stays_within_the_sum_and_uses_it(self):
        # What the sum keeps for queue and connections, which this load does not take, is 5 % of this.
        budget = 1280 * MIB
        with Serving("--memory-budget", str(budget), "--max-num-seqs", "64", "--max-model-len", "1024") as server, \
                tempfile.TemporaryDirectory() as folder:
            total = int(server.cache()["blocks_total"])
            # Sixty-four requests at once that together want a little more than the pool; salted, so that they share none.
            # Prompts are short, so that the last one is in before the first answer ends.
            tokens_each = total * 16 // 60
            max_tokens = tokens_each * 4 // 5
            prompt_tokens = tokens_each - max_tokens
            with open(os.path.join(folder, "in.jsonl"), "w") as file:
                for number in range(64):
                    prompt = " ".join(str((number * 7 + i) % 10) for i in range(prompt_tokens // 2))
                    file.write(json.dumps({"id": str(number), "prompt": prompt, "max_tokens": max_tokens,
                                           "cache_salt": str(number), "temperature": 0, "ignore_eos": True}) + "\n")
            code, out, err = server.client("generate", "--input", os.path.join(folder, "in.jsonl"),
                                           "--output", os.path.join(folder, "out.jsonl"), "--concurrency", "64")
            self.assertEqual(code, 0, err)
            stats = server.cache()
            peak = server.peak_resident_bytes()
            print(f"budget {budget}, peak resident {peak} ({peak / budget:.3f}), "
                  f"blocks {total}, peak used {stats['blocks_peak_used']}, preemptions {stats['preemptions']}")
            self.assertEqual(int(stats["budget_bytes"]), budget)
            self.assertAlmostEqual(int(stats["process_peak_resident_bytes"]), peak, delta=budget // 100)
            self.assertGreaterEqual(int(stats["blocks_peak_used"]), total * 9 // 10)
            self.assertLessEqual(peak, budget)
            self.assertGreaterEqual(peak, budget * 9 // 10)
            self.assertEqual(int(stats["blocks_used"]), 0)

    def test_prefixes_are_shared_within_a_salt_and_change_nothing(self):
        # In f32 the answers are equal to the bit of a logit, so the texts are too.
        exact = ["--weight-type", "f32", "--compute-type", "f32", "--kv-cache-dtype", "f32"]
        prompt = "The quick brown fox jumps over the lazy dog. " * 100
        with Serving(*exact, "--memory-budget", "3GiB", "--max-model-len", "2048") as server:
            def ask(question, *flags):
                code, out, err = server.client("generate", "--json", "--temperature", "0", "--max-tokens", "24", *flags,
                                               prompt + question)
                self.assertEqual(code, 0, err)
                answer = json.loads(out.splitlines()[-1])
                return answer["text"], int(answer["usage"]["cached_prompt_tokens"])

            questions = [f"Question {number}: what does the fox do?" for number in range(4)]
            cold = [ask(question, "--skip-prefix-cache") for question in questions]
            self.assertEqual([cached for _, cached in cold], [0] * 4)
            warm = [ask(question) for question in questions]
            self.assertEqual([text for text, _ in warm], [text for text, _ in cold])
            for _, cached in warm:
                self.assertGreater(cached, 900)
            self.assertEqual(ask(questions[0], "--cache-salt", "other"), (cold[0][0], 0))
            self.assertEqual(ask(questions[0], "--tenant", "other"), (cold[0][0], 0))
            self.assertGreater(ask(questions[0], "--cache-salt", "other")[1], 900)

    def test_what_never_fits_is_refused_with_sizes_and_nobody_else_notices(self):
        with Serving(*BF16, "--kv-cache-memory-bytes", "16MiB", "--max-model-len", "512") as server:
            before = server.cache()
            code, _, err = server.client("generate", "--max-tokens", "5000", "Once")
            self.assertEqual(code, 1)
            self.assertRegex(err, r"5000 output tokens.* KV blocks \(\d+ bytes\).*available are 512 tokens.* KV blocks")
            self.assertEqual(server.cache()["preemptions"], before["preemptions"])
            code, out, err = server.client("generate", "--chat", "--temperature", "0", "What is the capital of France?")
            self.assertEqual((code, out.strip()), (0, "The capital of France is Paris."), err)

    def test_health_answers_while_texts_are_encoded_and_all_threads_compute(self):
        with Serving() as server, tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "long.txt")
            Path(path).write_text("lorem ipsum " * (5 * MIB // 12))
            with open(path) as long_text:
                done = subprocess.run([CLIENT, "generate", "-", "--address", server.address], stdin=long_text,
                                      capture_output=True, text=True, timeout=HANG_SECONDS)
            self.assertEqual(done.returncode, 1)
            limit = re.search(r"more than the limit of (\d+)", done.stderr)
            self.assertIsNotNone(limit, done.stderr)
            os.truncate(path, int(limit.group(1)))  # the longest prompts that are tokenized at all

            busy = []
            for _ in range(8):
                with open(path) as long_text:
                    busy.append(subprocess.Popen([CLIENT, "tokenize", "-", "--json", "--address", server.address],
                                                 stdin=long_text, stdout=subprocess.DEVNULL))
            busy.append(subprocess.Popen([CLIENT, "generate", "--ignore-eos", "--max-tokens", "200", "Once",
                                          "--address", server.address], stdout=subprocess.DEVNULL))
            num_answers = 0
            while any(process.poll() is None for process in busy):
                code, out, err = server.client("health", "--timeout", "5")
                self.assertEqual(code, 0, out + err)
                num_answers += 1
            self.assertGreater(num_answers, 0)
            self.assertEqual([process.wait() for process in busy], [0] * len(busy))


if __name__ == "__main__":
    SERVER, CLIENT = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
