"""A quire-server of a test's own: started, ready, asked, stopped by its own pid."""
import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time
from typing import Any

START_SECONDS = 180  # a bound for a hung process, not a promise


class Serving:
    """Runs until the end of the block; its log is in `log`."""

    def __init__(self, server: str, model: str, *flags: str, http: bool = True) -> None:
        self.log = pathlib.Path(tempfile.mkstemp(prefix="quire-operation-", suffix=".log")[1])
        listen = ["--grpc-listen", "127.0.0.1:0"] + (["--http-listen", "127.0.0.1:0"] if http else [])
        with self.log.open("w") as log:
            self.process = subprocess.Popen([server, "--model", model, *listen, *flags], stderr=log)
        try:
            self._wait_until_ready()
        except BaseException:
            self.process.kill()
            raise

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline:
            text = self.log.read_text()
            ready = re.search(r"quire-server: ready on (\S+)", text)
            if ready:
                self.address = ready.group(1)
                http = re.search(r"HTTP address +(\S+)", text)
                self.http_address = http.group(1) if http else ""
                return
            if self.process.poll() is not None:
                raise RuntimeError(f"the server ended: {text}")
            time.sleep(0.05)
        raise RuntimeError(f"the server is not ready: {self.log}")

    def __enter__(self) -> "Serving":
        return self

    def __exit__(self, *_: Any) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.unlink()

    def resident_bytes(self) -> int:
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) * 1024

    def terminate(self, timeout: float) -> tuple[int, float]:
        """The exit code after SIGTERM, and how many seconds it took."""
        start = time.monotonic()
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout)
        return code, time.monotonic() - start


def new_key(server: str, tenant: str, *flags: str) -> tuple[str, dict[str, Any]]:
    """A key, and its entry for a file of keys."""
    out = subprocess.run([server, "new-key", tenant, *flags], capture_output=True, text=True, check=True).stdout
    key, entry = re.match(r"key:   (\S+)\nentry: (.*)\n", out).groups()
    return key, json.loads(entry)


class Certificates:
    """An authority in a folder, and what it signs, made with the openssl program."""

    def __init__(self, folder: str, name: str) -> None:
        self.folder = folder
        self.path = os.path.join(folder, f"{name}.pem")
        self._key = os.path.join(folder, f"{name}.key")
        self._run("req", "-x509", *self._new_key(self._key), "-subj", f"/CN={name}", "-days", "2", "-out", self.path)

    def issue(self, name: str, is_expired: bool = False) -> tuple[str, str]:
        """Paths of a certificate for localhost and 127.0.0.1, and of its key."""
        certificate, key, request, extensions = (os.path.join(self.folder, f"{name}.{end}")
                                                 for end in ("pem", "key", "csr", "ext"))
        self._run("req", *self._new_key(key), "-subj", f"/CN={name}", "-out", request)
        pathlib.Path(extensions).write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\n")
        validity = (["-not_before", "20200101000000Z", "-not_after", "20200102000000Z"] if is_expired
                    else ["-days", "2"])
        self._run("x509", "-req", "-in", request, "-CA", self.path, "-CAkey", self._key, "-CAcreateserial",
                  "-extfile", extensions, *validity, "-out", certificate)
        return certificate, key

    @staticmethod
    def _new_key(path: str) -> list[str]:
        return ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout", path]

    @staticmethod
    def _run(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], check=True, capture_output=True)
