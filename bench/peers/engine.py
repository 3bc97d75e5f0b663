"""What every engine under measurement offers, and one that lives in a child process."""

import json
import selectors
import subprocess
from dataclasses import asdict

from peers.environment import Unavailable


def read_line(stream, timeout_seconds):
    """The next line that a child writes; empty at its end. None: it did not write in time."""
    with selectors.DefaultSelector() as selector:
        selector.register(stream, selectors.EVENT_READ)
        return stream.readline() if selector.select(timeout_seconds) else None


class Engine:
    """Started when first needed and closed when it fails, so that the next work finds a fresh one."""

    name = ""
    how = ""  # what it runs, in a few words

    def supports(self, work):
        return True

    def begin(self, work):
        """Prepares and warms what the rounds of a work need; not measured."""

    def measure(self, work):
        """The figures of one round. Raises Unavailable."""
        raise NotImplementedError

    def end(self, work):
        """The rounds of a work are over."""

    def close(self):
        """Ends its processes."""


class ChildEngine(Engine):
    """Answers each line of JSON with another: {"figures"}, {"how"} or {"error"}."""

    def __init__(self, command, timeout_seconds):
        self.command = [str(part) for part in command]
        self.timeout_seconds = timeout_seconds
        self.child = None

    def _ask(self, question):
        if self.child is None:
            self.child = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                          stderr=subprocess.DEVNULL, text=True, bufsize=1)
        try:
            self.child.stdin.write(json.dumps(question) + "\n")
            line = read_line(self.child.stdout, self.timeout_seconds)
        except BrokenPipeError:
            line = ""
        if line is None:
            self.close()
            raise Unavailable(f"{self.name} did not answer within {self.timeout_seconds:g} s")
        if not line:
            code = self.child.wait()
            self.close()
            raise Unavailable(f"{self.name} ended with exit code {code}")
        answer = json.loads(line)
        if "error" in answer:
            raise Unavailable(f"{self.name}: {answer['error']}")
        return answer

    def begin(self, work):
        self.how = self._ask({"do": "begin", "work": asdict(work)})["how"]

    def measure(self, work):
        return self._ask({"do": "measure", "work": asdict(work)})["figures"]

    def end(self, work):
        self._ask({"do": "end", "work": asdict(work)})

    def close(self):
        if self.child is not None:
            self.child.kill()
            self.child.communicate()
            self.child = None
