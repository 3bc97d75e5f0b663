"""Requests without end, over gRPC and HTTP, and what became of each."""
import asyncio
import collections
import contextlib
import http.client
import json
import random
import threading
from collections.abc import AsyncIterator

import grpc
from quire_client import AsyncClient, QuireError, RetryPolicy

NO_RETRIES = RetryPolicy(max_retries=0)


class Outcomes:
    """Counts of ends by name: a gRPC code, or "HTTP 200"."""

    def __init__(self) -> None:
        self.counts: collections.Counter[str] = collections.Counter()
        self._lock = threading.Lock()

    def add(self, name: str) -> None:
        with self._lock:
            self.counts[name] += 1

    def __str__(self) -> str:
        return ", ".join(f"{name} {count}" for name, count in sorted(self.counts.items())) or "none"


async def ask_over_grpc(client: AsyncClient, rng: random.Random, outcomes: Outcomes) -> QuireError | None:
    """One request, streamed or whole; its error, if it ended with one."""
    options = {"max_tokens": rng.randint(1, 60), "temperature": 0, "ignore_eos": True}
    prompt = "word " * rng.randint(1, 200)
    try:
        if rng.random() < 0.5:
            await client.generate(prompt, **options)
        else:
            async with client.stream(prompt, **options) as stream:
                async for _ in stream:
                    pass
        outcomes.add("OK")
    except QuireError as error:
        outcomes.add(error.code.name)
        return error
    return None


@contextlib.asynccontextmanager
async def grpc_load(address: str, num_callers: int, seed: int, outcomes: Outcomes,
                    stop_when_unavailable: bool = True) -> AsyncIterator[None]:
    """`num_callers` that ask again and again, until the block ends or the server says that it is going."""
    async with contextlib.AsyncExitStack() as stack:
        stopping = asyncio.Event()

        async def call(i: int) -> None:
            rng = random.Random(seed * 1000 + i)
            client = await stack.enter_async_context(AsyncClient(address, retry=NO_RETRIES))
            while not stopping.is_set():
                error = await ask_over_grpc(client, rng, outcomes)
                if error and error.code == grpc.StatusCode.UNAVAILABLE and stop_when_unavailable:
                    return
                if error:
                    await asyncio.sleep(min(1.0, error.retry_delay or 0.05))

        callers = [asyncio.create_task(call(i)) for i in range(num_callers)]
        try:
            yield
        finally:
            stopping.set()
            await asyncio.gather(*callers)


class HttpLoad(threading.Thread):
    """One caller over HTTP, until `stop`."""

    def __init__(self, address: str, seed: int, outcomes: Outcomes) -> None:
        super().__init__()
        self.address = address
        self.rng = random.Random(seed)
        self.outcomes = outcomes
        self.stopping = threading.Event()

    def run(self) -> None:
        while not self.stopping.is_set():
            connection = http.client.HTTPConnection(self.address, timeout=120)
            try:
                while not self.stopping.is_set():
                    body = {"prompt": "word " * self.rng.randint(1, 200), "max_tokens": self.rng.randint(1, 60),
                            "temperature": 0, "stream": self.rng.random() < 0.5}
                    connection.request("POST", "/v1/completions", json.dumps(body), {"Content-Type": "application/json"})
                    response = connection.getresponse()
                    text = response.read()
                    end = f"HTTP {response.status}"
                    if response.status == 200 and body["stream"] and not text.endswith(b"data: [DONE]\n\n"):
                        end = "HTTP 200, ended by an error event"
                    self.outcomes.add(end)
                    if response.status != 200:
                        self.stopping.wait(0.05)
            except OSError as error:
                self.outcomes.add(f"HTTP connection: {type(error).__name__}")
                self.stopping.wait(0.05)
            finally:
                connection.close()

    def stop(self) -> None:
        self.stopping.set()
        self.join()
