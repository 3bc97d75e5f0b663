"""llama.cpp's HTTP server, from the wheel or the native build, and one request to it."""

import http.client
import json
import random
import socket
import subprocess
import time
import urllib.parse
from pathlib import Path

from peers.engine import read_line
from peers.environment import Unavailable, native, python


class LlamaServer:
    """A server that is ready; every slot has its own context of `slot_tokens`, and prompts are not cached in RAM."""

    def __init__(self, build, model, threads, slots, slot_tokens, timeout_seconds):
        self.timeout_seconds = timeout_seconds
        self.random = random.Random(1)
        if build == "wheel":
            self._start_wheel(model, threads, slots, slot_tokens)
        else:
            self._start_native(model, threads, slots, slot_tokens)

    def _start_wheel(self, model, threads, slots, slot_tokens):
        command = [python(), Path(__file__).with_name("wheel_server.py"), model, threads, slots, slot_tokens]
        self.process = subprocess.Popen([str(part) for part in command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.url = (read_line(self.process.stdout, self.timeout_seconds) or "").strip()
        if not self.url:
            self.close()
            raise Unavailable("llama.cpp's wheel does not load the model")

    def _start_native(self, model, threads, slots, slot_tokens):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        command = [native("llama-server"), "-m", model, "-t", threads, "-tb", threads, "-np", slots,
                   "-c", slots * slot_tokens, "--no-kv-unified", "--cache-ram", 0, "--host", "127.0.0.1",
                   "--port", port]
        self.process = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL,
                                        stderr=subprocess.DEVNULL)
        self._wait_until_ready()

    def _wait_until_ready(self):
        deadline = time.monotonic() + self.timeout_seconds
        while time.monotonic() < deadline and self.process.poll() is None:
            try:
                if self._connect("GET", "/health").status == 200:
                    return
            except OSError:
                pass
            time.sleep(0.2)
        self.close()
        raise Unavailable("llama.cpp's native server does not load the model")

    def _connect(self, method, path, body=None):
        connection = http.client.HTTPConnection(urllib.parse.urlparse(self.url).netloc, timeout=self.timeout_seconds)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        return connection.getresponse()

    def prompt(self, length):
        return [self.random.randrange(100, 49000) for _ in range(length)]

    def complete(self, prompt, max_tokens, slot=-1, cached=False, stop=None):
        """The times of an answer: [(time, tokens so far)...]. It is given up when the event `stop` is set."""
        request = {"prompt": prompt, "n_predict": max_tokens, "temperature": 0, "ignore_eos": True, "stream": True,
                   "id_slot": slot, "cache_prompt": cached, "timings_per_token": True}
        times = []
        try:
            response = self._connect("POST", "/completion", json.dumps(request))
            for line in response:
                if not line.startswith(b"data: "):
                    continue
                count = json.loads(line[6:]).get("tokens_predicted", 0)
                # A token that ends within a character is held back, and told with the next.
                if count > (times[-1][1] if times else 0):
                    times.append((time.monotonic(), count))
                if stop is not None and stop.is_set():
                    break
            response.close()
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise Unavailable(f"llama.cpp's server failed: {error}") from error
        if not times:
            raise Unavailable("llama.cpp's server sent no token")
        return times

    def close(self):
        self.process.terminate()
        try:
            self.process.communicate(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.communicate()
