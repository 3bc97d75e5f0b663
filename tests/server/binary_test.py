"""Runs the real quire-server: what it prints, what it refuses, and how it stops.

usage: binary_test.py SERVER TINY_MODEL_WRITER
SERVER is the binary; TINY_MODEL_WRITER a program that writes a small model to the path it is given.
"""

import hashlib
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

SERVER = ""
MODEL = ""
START_SECONDS = 120  # a bound for a hung process, not a promise


def run(*arguments):
    """The exit code, standard output and standard error of a server that ends by itself."""
    done = subprocess.run([SERVER, *arguments], capture_output=True, text=True, timeout=START_SECONDS)
    return done.returncode, done.stdout, done.stderr


class Serving:
    """A running server, ready; killed at the end of the block if it still runs."""

    def __init__(self, *arguments):
        self.arguments = arguments

    def __enter__(self):
        self.process = subprocess.Popen(
            [SERVER, "--model", MODEL, "--grpc-listen", "127.0.0.1:0", "--threads", "1", *self.arguments],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.start_lines = []
        for line in self.process.stderr:
            self.start_lines.append(line)
            http_line = re.match(r"  HTTP address  (\S+)$", line)
            if http_line:
                self.http_address = http_line.group(1)
            ready = re.match(r"quire-server: ready on (\S+):(\d+)$", line)
            if ready:
                self.port = int(ready.group(2))
                return self
        raise AssertionError("not ready: " + "".join(self.start_lines))

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()


class Refusals(unittest.TestCase):
    def check_refused(self, arguments, *fragments):
        code, out, err = run(*arguments)
        self.assertEqual(code, 2, err)
        self.assertEqual(out, "")
        for fragment in fragments:
            self.assertIn(fragment, err)
        return err

    def check_one_sentence(self, arguments, *fragments):
        err = self.check_refused(arguments, *fragments)
        self.assertEqual(len(err.strip().splitlines()), 1, err)

    def test_flags(self):
        self.check_one_sentence(["--no-such-flag"], "no-such-flag")
        self.check_one_sentence(["--model", "m", "--max-num-seqs", "0"], "max_num_seqs", "[1, 4096]")
        self.check_one_sentence(["--model", "m", "--block-size", "17"], "block_size", "16, 32 or 64")
        self.check_one_sentence([], "--model")
        self.check_one_sentence(["--config", "/no/such/file"], "/no/such/file")

    def test_serving_other_machines_needs_credentials(self):
        self.check_one_sentence(["--model", "m", "--grpc-listen", "0.0.0.0:0"], "grpc_listen", "--allow-unauthenticated")
        self.check_one_sentence(["--model", "m", "--http-listen", "[::]:0"], "http_listen", "--api-keys")
        self.check_one_sentence(["--model", "m", "--grpc-listen", "127.evil.example:0"], "grpc_listen")
        for accepted in (["--allow-unauthenticated"], ["--api-keys", "keys.json"],
                         ["--tls-client-ca", "ca", "--tls-certificate", "c", "--tls-key", "k"]):
            err = self.check_refused(["--model", "/no/such/model", "--grpc-listen", "0.0.0.0:0", *accepted])
            self.assertNotIn("grpc_listen", err)
        # What is only printed is served to nobody.
        self.assertEqual(run("--print-config", "--grpc-listen", "0.0.0.0:0")[0], 0)
        self.assertEqual(run("--dry-run", "--model", MODEL, "--http-listen", "0.0.0.0:0")[0], 0)

    def test_security_files(self):
        self.check_one_sentence(["--model", MODEL, "--tls-certificate", "c"], "tls_key")
        self.check_one_sentence(["--model", MODEL, "--tls-key", "k"], "tls_certificate")
        quiet = ["--model", MODEL, "--grpc-listen", "127.0.0.1:0", "--log-level", "off"]
        self.check_one_sentence([*quiet, "--api-keys", "/no/such/file"], "api_keys", "/no/such/file")
        with tempfile.TemporaryDirectory() as folder:
            keys = os.path.join(folder, "keys.json")
            with open(keys, "w") as file:
                file.write('{"keys": [], "tenants": {}}')
            self.check_one_sentence([*quiet, "--api-keys", keys, "--tenants", '{"a": {}}'], "tenants", keys)
        self.check_one_sentence([*quiet, "--tls-certificate", "/no/such/file", "--tls-key", "k"], "tls_certificate")

    def test_models(self):
        with tempfile.TemporaryDirectory() as folder:
            text = os.path.join(folder, "text.gguf")
            with open(text, "w") as file:
                file.write("this is no model at all")
            self.check_one_sentence(["--model", os.path.join(folder, "missing.gguf")], "missing.gguf")
            self.check_one_sentence(["--model", folder], folder)
            self.check_one_sentence(["--model", text], text)
            self.check_one_sentence(["inspect", text], text)

    def test_truncated_model(self):
        with open(MODEL, "rb") as file:
            whole = file.read()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "cut.gguf")
            for size in [0, 3, 4, 20, 100, len(whole) // 2, len(whole) - 1]:
                with open(path, "wb") as file:
                    file.write(whole[:size])
                self.check_one_sentence(["--model", path], path)

    def test_port_in_use(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            address = "127.0.0.1:%d" % taken.getsockname()[1]
            self.check_one_sentence(["--model", MODEL, "--grpc-listen", address, "--log-level", "off"], address)

    def test_budget_too_small(self):
        self.check_refused(["--model", MODEL, "--memory-budget", "1MiB", "--log-level", "off"], "memory_budget")


class Printing(unittest.TestCase):
    def test_print_config(self):
        code, out, err = run("--print-config", "--max-num-seqs", "7", "--memory-budget", "1GiB")
        self.assertEqual((code, err), (0, ""))
        config = json.loads(out)
        self.assertEqual(config["max_num_seqs"], 7)
        self.assertEqual(config["memory_budget"], 1 << 30)
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "c.json")
            with open(path, "w") as file:
                file.write("// read back\n" + out)
            self.assertEqual(run("--config", path, "--print-config")[1], out)

    def test_new_keys(self):
        keys = set()
        for flags in ([], ["--admin"]):
            code, out, err = run("new-key", "team-a", *flags)
            self.assertEqual((code, err), (0, ""))
            key, entry = re.match(r"key:   (quire_[0-9a-f]{64})\nentry: (.*)\n$", out).groups()
            entry = json.loads(entry)
            self.assertEqual(entry["sha256"], hashlib.sha256(key.encode()).hexdigest())
            self.assertEqual((entry["tenant"], entry.get("admin", False)), ("team-a", bool(flags)))
            keys.add(key)
        self.assertEqual(len(keys), 2)
        self.assertEqual(run("new-key", "")[0], 2)

    def test_help_and_version(self):
        code, out, _ = run("--help")
        self.assertEqual(code, 0)
        for name in json.loads(run("--print-config")[1]):
            self.assertIn("--" + name.replace("_", "-"), out)
        code, out, _ = run("--version")
        self.assertEqual(code, 0)
        self.assertRegex(out, r"^quire-server \d+\.\d+\.\d+\n$")

    def test_inspect(self):
        code, out, err = run("inspect", MODEL)
        self.assertEqual(code, 0, err)
        self.assertIn("llama", out)


class Reloading(unittest.TestCase):
    def test_sighup_reads_the_log_level_again(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "c.json")

            def write(level):
                with open(path, "w") as file:
                    json.dump({"log_level": level}, file)

            write("info")
            with Serving("--config", path) as server:
                server.process.send_signal(signal.SIGHUP)
                self.assertIn("SIGHUP", server.process.stderr.readline())
                write("nonsense")
                server.process.send_signal(signal.SIGHUP)
                self.assertIn("nonsense", server.process.stderr.readline())
                self.assertIn("SIGHUP", server.process.stderr.readline())
                write("error")
                server.process.send_signal(signal.SIGHUP)
                server.process.send_signal(signal.SIGTERM)
                _, rest = server.process.communicate(timeout=START_SECONDS)
                self.assertEqual((server.process.returncode, rest), (0, ""))


class TenantsInTheFileOfKeys(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = os.path.join(folder.name, "keys.json")
        out = run("new-key", "ops", "--admin")[1]
        self.key, self.entry = re.match(r"key:   (\S+)\nentry: (.*)\n$", out).groups()

    def write(self, **limits):
        """At once, so that the server never sees half of it."""
        with open(self.path + ".new", "w") as file:
            file.write('{"keys": [%s], "tenants": {"ops": %s}}' % (self.entry, json.dumps(limits)))
        os.replace(self.path + ".new", self.path)

    def ask(self, server, method, path, body=None):
        headers = {"Content-Type": "application/json", "Authorization": "Bearer " + self.key}
        connection = http.client.HTTPConnection(server.http_address, timeout=START_SECONDS)
        connection.request(method, path, body and json.dumps(body), headers)
        response = connection.getresponse()
        answer = response.status, json.loads(response.read())
        connection.close()
        return answer

    def complete(self, server, max_tokens=1):
        return self.ask(server, "POST", "/v1/completions", {"prompt": "abc", "max_tokens": max_tokens})[0]

    def wait_until_read(self, server):
        while "read again, and in force now" not in server.process.stderr.readline():
            self.assertIsNone(server.process.poll())

    def weights(self, server):
        """Of the tenants that have requests, while one has."""
        stop = threading.Event()

        def load():
            while not stop.is_set():
                self.complete(server, 20)

        thread = threading.Thread(target=load)
        thread.start()
        try:
            tenants = []
            while not tenants:
                tenants = self.ask(server, "GET", "/v1/cache")[1].get("tenants", [])
            return [(tenant["tenant"], tenant["weight"]) for tenant in tenants]
        finally:
            stop.set()
            thread.join()

    def test_change_without_a_restart(self):
        self.write(requests_per_minute=1)
        with Serving("--api-keys", self.path, "--http-listen", "127.0.0.1:0") as server:
            self.assertEqual([self.complete(server), self.complete(server)], [200, 429])
            self.write(weight=3, max_kv_blocks=2)
            self.wait_until_read(server)  # nobody calls meanwhile
            self.assertEqual([self.complete(server), self.complete(server)], [200, 200])
            self.assertEqual(self.complete(server, 40), 400)
            self.assertEqual(self.weights(server), [("ops", 3)])
            self.write(weight=5)
            server.process.send_signal(signal.SIGHUP)
            self.wait_until_read(server)
            self.assertEqual(self.complete(server, 40), 200)
            self.assertEqual(self.weights(server), [("ops", 5)])

    def test_a_broken_file_changes_nothing(self):
        self.write(requests_per_minute=1)
        with Serving("--api-keys", self.path, "--http-listen", "127.0.0.1:0") as server:
            self.write(weight=self.key)
            server.process.send_signal(signal.SIGHUP)
            line = server.process.stderr.readline()
            self.assertIn("tenants.ops.weight", line)
            self.assertNotIn(self.key, line)
            self.assertEqual([self.complete(server), self.complete(server)], [200, 429])


class Logging(unittest.TestCase):
    def complete(self, server, prompt):
        """Over HTTP, with a trace; the request's id."""
        headers = {"Content-Type": "application/json", "X-Request-Id": "request-7",
                   "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
        connection = http.client.HTTPConnection(server.http_address, timeout=START_SECONDS)
        connection.request("POST", "/v1/completions", json.dumps({"prompt": prompt, "max_tokens": 3}), headers)
        response = connection.getresponse()
        self.assertEqual(response.status, 200, response.read())
        connection.close()

    def lines_of(self, *flags):
        with Serving("--http-listen", "127.0.0.1:0", *flags) as server:
            self.complete(server, "secret words")
            server.process.send_signal(signal.SIGTERM)
            return server.start_lines, server.process.communicate(timeout=START_SECONDS)[1].splitlines()

    def test_json(self):
        _, lines = self.lines_of("--log-format", "json")
        events = [json.loads(line) for line in lines]
        ends = [event for event in events if event["message"] == "request ended"]
        self.assertEqual(len(ends), 1, events)
        self.assertEqual(ends[0]["request_id"], "request-7")
        self.assertEqual(ends[0]["trace_id"], "4bf92f3577b34da6a3ce929d0e0e4736")
        self.assertEqual((ends[0]["end"], ends[0]["output_tokens"], ends[0]["level"]), ("length", 3, "info"))
        self.assertRegex(ends[0]["time"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")
        self.assertNotIn("secret", "".join(lines))

    def test_text(self):
        _, lines = self.lines_of("--log-prompts")
        ends = [line for line in lines if "request request-7 " in line]
        self.assertEqual(len(ends), 1, lines)
        self.assertIn("trace 4bf92f3577b34da6a3ce929d0e0e4736", ends[0])
        self.assertIn("secret words", "".join(lines))


class ServiceManager(unittest.TestCase):
    def test_is_told(self):
        with tempfile.TemporaryDirectory() as folder, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
            path = os.path.join(folder, "notify")
            manager.bind(path)
            manager.settimeout(START_SECONDS)
            with mock.patch.dict(os.environ, NOTIFY_SOCKET=path), Serving() as server:
                self.assertEqual(manager.recv(100), b"READY=1")
                server.process.send_signal(signal.SIGHUP)
                self.assertRegex(manager.recv(100), rb"^RELOADING=1\nMONOTONIC_USEC=\d+$")
                self.assertEqual(manager.recv(100), b"READY=1")
                server.process.send_signal(signal.SIGTERM)
                self.assertEqual(manager.recv(100), b"STOPPING=1")

    def test_a_socket_that_is_not_there_is_told_in_the_log(self):
        with mock.patch.dict(os.environ, NOTIFY_SOCKET="/no/such/socket"), Serving() as server:
            server.process.send_signal(signal.SIGTERM)
            self.assertIn("NOTIFY_SOCKET", server.process.communicate(timeout=START_SECONDS)[1])


class Stopping(unittest.TestCase):
    def test_sigterm_and_sigint(self):
        for number in [signal.SIGTERM, signal.SIGINT]:
            with Serving() as server:
                with socket.create_connection(("127.0.0.1", server.port)):
                    pass
                server.process.send_signal(number)
                self.assertEqual(server.process.wait(START_SECONDS), 0)

    def test_sigterm_while_loading(self):
        process = subprocess.Popen([SERVER, "--model", MODEL, "--grpc-listen", "127.0.0.1:0", "--log-level", "off"],
                                   stderr=subprocess.PIPE)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=START_SECONDS)
        # The signal may have come before the process could take it for anything but its end.
        self.assertIn(process.returncode, (0, -signal.SIGTERM))

    def test_start_block(self):
        with Serving("--served-model-name", "tiny") as server:
            block = "".join(server.start_lines)
            for word in ["tiny", "weights", "compute", "threads", "KV", "address"]:
                self.assertIn(word, block)

    def test_garbage_on_the_port_ends_nothing(self):
        with Serving() as server:
            for garbage in [b"GET / HTTP/1.1\r\n\r\n", struct.pack(">I", 0xFFFFFFFF) * 100]:
                with socket.create_connection(("127.0.0.1", server.port)) as connection:
                    connection.sendall(garbage)
            self.assertIsNone(server.process.poll())
            server.process.send_signal(signal.SIGTERM)
            self.assertEqual(server.process.wait(START_SECONDS), 0)


if __name__ == "__main__":
    SERVER = sys.argv[1]
    with tempfile.TemporaryDirectory() as model_folder:
        MODEL = os.path.join(model_folder, "tiny.gguf")
        subprocess.run([sys.argv[2], MODEL], check=True)
        unittest.main(argv=[sys.argv[0]], verbosity=2)
