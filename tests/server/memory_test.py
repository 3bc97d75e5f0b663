"""The memory sum of the real quire-server: what a dry run says, what a start says, and what is refused before loading.

usage: memory_test.py SERVER TINY_MODEL_WRITER
Every test runs with the tests' tiny model; those of RealModel also with the real one ($QUIRE_TEST_MODEL, else the one
scripts/fetch_model puts in place), and are skipped without it unless CI=true.
"""

import json
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SERVER = ""
TINY_MODEL = ""
HANG_SECONDS = 280  # a bound for a hung process, not a promise
MIB = 1 << 20


def real_model_path():
    folder = os.environ.get("QUIRE_MODEL_DIR", Path.home() / ".cache/quire/models")
    return os.environ.get("QUIRE_TEST_MODEL", str(Path(folder) / "SmolLM2-135M-Instruct.Q4_1.gguf"))


def limiting(address_space_bytes):
    """What a child does before it becomes the server."""
    if address_space_bytes is None:
        return None
    return lambda: resource.setrlimit(resource.RLIMIT_AS, (address_space_bytes, address_space_bytes))


def run(*arguments, address_space_bytes=None):
    """The exit code, standard output and standard error of a server that ends by itself."""
    done = subprocess.run([SERVER, *arguments], capture_output=True, text=True, timeout=HANG_SECONDS,
                          preexec_fn=limiting(address_space_bytes))
    return done.returncode, done.stdout, done.stderr


class Started:
    """A server that became ready: its start message's sum, and what the kernel counted. Stopped in the end."""

    def __init__(self, *arguments, address_space_bytes=None):
        self.process = subprocess.Popen(
            [SERVER, "--grpc-listen", "127.0.0.1:0", "--log-level", "off", *arguments],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=limiting(address_space_bytes))
        self.lines = {}
        self.text = ""
        self.ready = False
        for line in self.process.stderr:
            self.text += line
            item = re.match(r"  (\S+(?: \S+)?) +[\d.]+ [MG]iB +(\d+) bytes", line)
            if item:
                self.lines[item.group(1)] = int(item.group(2))
            if line.startswith("quire-server: ready on "):
                self.ready = True
                break
        if self.ready:
            status = Path(f"/proc/{self.process.pid}/status").read_text()
            self.peak_resident_bytes = int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) * 1024
            self.peak_mapped_bytes = int(re.search(r"VmPeak:\s+(\d+) kB", status).group(1)) * 1024

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=HANG_SECONDS)
        self.process.stderr.close()
        return code


class Sum:
    """Tests for one model, which `model()` names; mixed into a TestCase."""

    def start(self, *arguments, address_space_bytes=None):
        started = Started("--model", self.model(), *arguments, address_space_bytes=address_space_bytes)
        self.addCleanup(started.process.kill)
        self.assertTrue(started.ready, started.text)
        return started

    def dry_run(self, *arguments):
        code, out, err = run("--dry-run", "--json", "--model", self.model(), *arguments)
        self.assertEqual((code, err), (0, ""))
        return json.loads(out)

    def refused(self, *arguments, address_space_bytes=None):
        code, out, err = run("--model", self.model(), *arguments, address_space_bytes=address_space_bytes)
        self.assertEqual((code, out), (2, ""), err)
        self.assertNotIn("loading weights", err)
        return err

    def sum_matches(self, *arguments):
        planned = self.dry_run(*arguments)
        self.assertEqual(sum(planned["sum"].values()), planned["budget_bytes"])
        started = self.start(*arguments)
        names = {"weights_bytes": "weights", "workspace_bytes": "workspace", "text_layer_bytes": "text layer",
                 "request_state_bytes": "request state", "queue_bytes": "queue", "rpc_bytes": "connections",
                 "process_bytes": "process", "block_index_bytes": "block index", "reserve_bytes": "reserve",
                 "pool_bytes": "KV pool"}
        for key, name in names.items():
            self.assertAlmostEqual(planned["sum"][key], started.lines[name], delta=started.lines[name] / 100, msg=name)
        budget = started.lines["memory budget"]
        self.assertAlmostEqual(planned["budget_bytes"], budget, delta=budget / 100)
        self.assertLessEqual(started.peak_resident_bytes, budget)
        self.assertEqual(started.stop(), 0)
        return planned

    def test_dry_run_equals_start(self):
        self.sum_matches("--memory-budget", str(self.budget()))
        self.sum_matches("--kv-cache-memory-bytes", str(self.pool()))

    def test_dry_run_answers_for_machines_larger_than_this_one(self):
        planned = self.dry_run("--memory-budget", "200TiB")
        self.assertEqual(planned["budget_bytes"], 200 << 40)
        self.assertFalse(planned["starts_here"])
        self.assertEqual(planned["full_length_requests"], planned["max_num_seqs"])
        code, out, err = run("--dry-run", "--model", self.model(), "--memory-budget", "200TiB")
        self.assertEqual(code, 0, err)
        self.assertIn("would be refused", out)
        self.assertIn("memory_budget", self.refused("--memory-budget", "200TiB"))

    def test_dry_run_loads_nothing(self):
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.execv(SERVER, [SERVER, "--dry-run", "--model", self.model(), "--memory-budget", str(self.budget())])
        _, status, usage = os.wait4(child, 0)
        self.assertEqual(status, 0)
        self.assertLess(usage.ru_maxrss * 1024, 100 * MIB)

    def test_too_small_names_what_would_do(self):
        err = self.refused("--memory-budget", "8MiB")
        least = int(re.search(r"what would work is at least [\d.]+ \S+ \((\d+) bytes\)", err).group(1))
        self.refused("--memory-budget", str(least - 1))
        started = self.start("--memory-budget", str(least))
        self.assertLessEqual(started.peak_resident_bytes, least)
        self.assertEqual(started.stop(), 0)

    def test_too_long_names_the_length_that_would_do(self):
        pool = ["--kv-cache-memory-bytes", str(self.short_pool())]
        longest = self.dry_run()["max_model_len"]
        err = self.refused("--max-model-len", str(longest), *pool)
        fitting = int(re.search(r"or a max_model_len of at most (\d+) tokens", err).group(1))
        self.assertLess(fitting, longest)
        self.refused("--max-model-len", str(fitting + 1), *pool)
        self.assertEqual(self.start("--max-model-len", str(fitting), *pool).stop(), 0)

    def test_address_space(self):
        limit = 1400 * MIB
        err = self.refused("--memory-budget", str(limit), address_space_bytes=limit)
        self.assertIn("RLIMIT_AS", err)
        usable = int(re.search(r"RLIMIT_AS\) leaves, [\d.]+ \S+ \((\d+) bytes\)", err).group(1))
        # A little less than what was named: the process maps some kilobytes more or less from run to run.
        started = self.start("--memory-budget", str(usable - MIB), address_space_bytes=limit)
        self.assertLess(started.peak_mapped_bytes, limit)
        self.assertEqual(started.stop(), 0)
        started = self.start(address_space_bytes=limit)  # by itself
        self.assertLess(started.peak_mapped_bytes, limit)
        self.assertEqual(started.stop(), 0)
        err = self.refused(address_space_bytes=400 * MIB)
        self.assertIn("RLIMIT_AS", err)
        self.assertIn("what would work is at least", err)


class TinyModel(Sum, unittest.TestCase):
    def model(self):
        return TINY_MODEL

    def budget(self):
        return 160 * MIB

    def pool(self):
        return 8 * MIB

    def short_pool(self):
        return 80 << 10


@unittest.skipUnless(os.path.exists(real_model_path()) or os.environ.get("CI") == "true",
                     "the real model is not there")
class RealModel(Sum, unittest.TestCase):
    def model(self):
        return real_model_path()

    def budget(self):
        return 640 * MIB

    def pool(self):
        return 200 * MIB

    def short_pool(self):
        return 50 * MIB


if __name__ == "__main__":
    SERVER = sys.argv[1]
    with tempfile.TemporaryDirectory() as model_folder:
        TINY_MODEL = os.path.join(model_folder, "tiny.gguf")
        subprocess.run([sys.argv[2], TINY_MODEL], check=True)
        unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)
