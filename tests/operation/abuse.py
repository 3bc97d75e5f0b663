"""What a server with keys and mutual TLS answers to those who may not come in, and to those who only hold connections;
and that a stream which runs meanwhile keeps its pace. Prints both, and fails on a wrong answer.
"""
import argparse
import contextlib
import http.client
import json
import os
import socket
import ssl
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator

from load import NO_RETRIES
from quire_client import Client, QuireError
from serving import Certificates, Serving, new_key

NUM_IDLE_CONNECTIONS = 10_000
NUM_SLOW_CONNECTIONS = 32
HTTP2_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0"
SECONDS_OF_PACE = 8


class Server:
    """With keys and mutual TLS, and what good callers and bad ones have."""

    def __init__(self, arguments: argparse.Namespace, folder: str) -> None:
        authority = Certificates(folder, "authority")
        certificate, key = authority.issue("server")
        self.client_identity = authority.issue("client")
        self.expired_identity = authority.issue("expired", is_expired=True)
        self.strangers_identity = Certificates(folder, "stranger").issue("strangers-client")
        self.ca = authority.path
        self.key, entry = new_key(arguments.server, "team-a")
        keys = os.path.join(folder, "keys.json")
        with open(keys, "w") as file:
            json.dump({"keys": [entry]}, file)
        self.serving = Serving(arguments.server, arguments.model, "--api-keys", keys, "--tls-certificate", certificate,
                               "--tls-key", key, "--tls-client-ca", authority.path, "--memory-budget", "1GiB",
                               "--http-request-seconds", "3", "--log-level", "warning")

    def client(self, identity: tuple[str, str] | None = None, **options: str | None) -> Client:
        certificate, key = identity or self.client_identity
        return Client(self.serving.address, ca_certificate=self.ca, client_certificate=certificate, client_key=key,
                      retry=NO_RETRIES, timeout=60, **{"api_key": self.key, **options})

    def https(self, identity: tuple[str, str] | None) -> http.client.HTTPSConnection:
        context = ssl.create_default_context(cafile=self.ca)
        if identity:
            context.load_cert_chain(*identity)
        return http.client.HTTPSConnection(self.serving.http_address, context=context, timeout=60)


def grpc_answer(client: Client, prompt: str = "Hi") -> str:
    with client:
        try:
            client.generate(prompt, max_tokens=1)
            return "OK"
        except QuireError as error:
            return error.code.name


def http_answer(server: Server, identity: tuple[str, str] | None, key: str, body: bytes = b'{"prompt": "Hi", "max_tokens": 1}') -> str:
    connection = server.https(identity)
    try:
        headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {key}"} if key else {})}
        connection.request("POST", "/v1/completions", body, headers)
        return str(connection.getresponse().status)
    except (OSError, http.client.HTTPException):
        return "no connection"
    finally:
        connection.close()


def slow_request_answer(server: Server) -> str:
    """Of a client that sends a byte now and then: how it ends."""
    connection = server.https(server.client_identity)
    connection.connect()
    sock = connection.sock
    try:
        for byte in b"POST /v1/completions HTTP/1.1\r\nHost: quire\r\nContent-Length: 1000\r\n\r\n" + b" " * 1000:
            sock.sendall(bytes([byte]))
            time.sleep(0.1)
        return "the whole request was waited for"
    except OSError:
        return "closed"
    finally:
        connection.close()


def wrong_answers(server: Server) -> list[str]:
    cases: list[tuple[str, Callable[[], str], str]] = [
        ("gRPC, right key", lambda: grpc_answer(server.client()), "OK"),
        ("gRPC, wrong key", lambda: grpc_answer(server.client(api_key="quire_wrong")), "UNAUTHENTICATED"),
        ("gRPC, no key", lambda: grpc_answer(server.client(api_key=None)), "UNAUTHENTICATED"),
        ("gRPC, expired certificate", lambda: grpc_answer(server.client(server.expired_identity)), "UNAVAILABLE"),
        ("gRPC, stranger's certificate", lambda: grpc_answer(server.client(server.strangers_identity)), "UNAVAILABLE"),
        ("gRPC, 17 MiB message", lambda: grpc_answer(server.client(), "x" * (17 << 20)), "RESOURCE_EXHAUSTED"),
        ("HTTPS, right key", lambda: http_answer(server, server.client_identity, server.key), "200"),
        ("HTTPS, wrong key", lambda: http_answer(server, server.client_identity, "wrong"), "401"),
        ("HTTPS, no key", lambda: http_answer(server, server.client_identity, ""), "401"),
        ("HTTPS, expired certificate", lambda: http_answer(server, server.expired_identity, server.key), "no connection"),
        ("HTTPS, stranger's certificate", lambda: http_answer(server, server.strangers_identity, server.key),
         "no connection"),
        ("HTTPS, no certificate", lambda: http_answer(server, None, server.key), "no connection"),
        ("HTTPS, 5 MiB body", lambda: http_answer(server, server.client_identity, server.key, b" " * (5 << 20)), "413"),
        ("HTTPS, a byte now and then", lambda: slow_request_answer(server), "closed"),
    ]
    findings = []
    for name, answer, expected in cases:
        got = answer()
        print(f"abuse: {name}: {got}", flush=True)
        if got != expected:
            findings.append(f"{name}: {got}, not {expected}")
    return findings


class Pace(threading.Thread):
    """A stream that runs all the time; when its tokens came."""

    def __init__(self, server: Server) -> None:
        super().__init__()
        self.client = server.client()
        self.times: list[float] = []
        self.stopping = threading.Event()
        self.error: Exception | None = None

    def run(self) -> None:
        try:
            with self.client:
                while not self.stopping.is_set():
                    with self.client.stream("Once upon a time", max_tokens=1000, ignore_eos=True, timeout=None) as stream:
                        for _ in stream:
                            self.times.append(time.monotonic())
                            if self.stopping.is_set():
                                return
        except QuireError as error:
            self.error = error

    def median_gap(self) -> float:
        """Of the seconds from now on, in milliseconds."""
        start = time.monotonic()
        time.sleep(SECONDS_OF_PACE)
        times = [t for t in self.times if t >= start]
        return statistics.median(b - a for a, b in zip(times, times[1:], strict=False)) * 1e3

    def stop(self) -> None:
        self.stopping.set()
        self.join()


@contextlib.contextmanager
def idle_connections(address: str) -> Iterator[None]:
    host, port = address.rsplit(":", 1)
    connections = []
    try:
        for _ in range(NUM_IDLE_CONNECTIONS):
            connection = socket.create_connection((host, int(port)), timeout=20)
            with contextlib.suppress(OSError):
                connection.sendall(HTTP2_PREFACE)
            connections.append(connection)
        yield
    finally:
        for connection in connections:
            connection.close()


@contextlib.contextmanager
def slow_senders(server: Server) -> Iterator[None]:
    stopping = threading.Event()

    def send() -> None:
        while not stopping.is_set():
            with contextlib.suppress(OSError):
                slow_request_answer(server)

    threads = [threading.Thread(target=send) for _ in range(NUM_SLOW_CONNECTIONS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        stopping.set()
        for thread in threads:
            thread.join()


def keep_pace(server: Server) -> list[str]:
    pace = Pace(server)
    pace.start()
    budget = 1 << 30
    try:
        before = pace.median_gap()
        with idle_connections(server.serving.address):
            idle, idle_bytes = pace.median_gap(), server.serving.resident_bytes()
        with slow_senders(server):
            slow = pace.median_gap()
        after = pace.median_gap()
    finally:
        pace.stop()
    print(f"abuse: a stream's median gap: {before:.2f} ms; beside {NUM_IDLE_CONNECTIONS} idle gRPC connections "
          f"{idle:.2f} ms ({idle_bytes >> 20} MiB resident of {budget >> 20}); beside {NUM_SLOW_CONNECTIONS} slow HTTPS senders {slow:.2f} ms; "
          f"after {after:.2f} ms")
    findings = [f"the stream ended: {pace.error}"] if pace.error else []
    if idle_bytes > budget:
        findings.append(f"the budget was passed: {idle_bytes} bytes")
    return findings


def main(arguments: argparse.Namespace) -> None:
    with tempfile.TemporaryDirectory() as folder:
        server = Server(arguments, folder)
        with server.serving:
            findings = wrong_answers(server) + keep_pace(server)
            code, _ = server.serving.terminate(120)
            if code != 0:
                findings.append(f"exit code {code}")
    if findings:
        sys.exit("abuse: " + "; ".join(findings))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("server")
    parser.add_argument("model")
    main(parser.parse_args())
