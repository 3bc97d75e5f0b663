"""Calls that are left early end at the server."""
import asyncio
import gc
import signal
import threading
from collections.abc import Callable, Iterator

import grpc
import pytest
from fake_server import PATIENCE_SECONDS, FakeServer, failure

from quire_client import AsyncClient, Client, QuireError
from quire_client.retry_policy import Attempts


@pytest.fixture
def server() -> Iterator[FakeServer]:
    """Whose answers end only when the client ends them."""
    fake = FakeServer(lambda request, context: fake.hold(request, context))
    with fake:
        yield fake


def ended(server: FakeServer) -> bool:
    return server.ended.wait(PATIENCE_SECONDS)


def when_arrived(server: FakeServer, act: Callable[[], None]) -> None:
    if server.arrived.wait(PATIENCE_SECONDS):
        act()


async def arrived(server: FakeServer) -> None:
    assert await asyncio.to_thread(server.arrived.wait, PATIENCE_SECONDS)


async def has_ended(server: FakeServer) -> bool:
    return await asyncio.to_thread(ended, server)


def test_the_end_of_the_with_block(server: FakeServer) -> None:
    with Client(server.address) as client:
        with client.stream("Hi") as stream:
            assert next(stream).text == "Hello"
            assert not server.ended.is_set()
        assert ended(server)
        assert list(stream) == []


def test_a_stream_that_is_forgotten(server: FakeServer) -> None:
    with Client(server.address) as client:
        for _ in client.stream("Hi"):
            break
        gc.collect()
        assert ended(server)


def test_another_thread_closes_the_stream(server: FakeServer) -> None:
    with Client(server.address) as client:
        stream = client.stream("Hi")
        assert next(stream).text == "Hello"
        closer = threading.Thread(target=stream.close)
        closer.start()
        assert next(stream, None) is None
        assert ended(server)
        closer.join()


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Every failed attempt is followed by a wait of an hour, which this announces."""
    event = threading.Event()

    def delay_after(attempts: Attempts, error: QuireError) -> float:
        event.set()
        return 3600

    monkeypatch.setattr(Attempts, "delay_after", delay_after)
    return event


def test_closing_ends_the_wait_for_a_retry(waiting: threading.Event) -> None:
    with FakeServer(failure(grpc.StatusCode.UNAVAILABLE, "full")) as server, Client(server.address) as client:
        stream = client.stream("Hi")
        reader = threading.Thread(target=list, args=(stream,), daemon=True)
        reader.start()
        assert waiting.wait(PATIENCE_SECONDS)
        stream.close()
        reader.join(PATIENCE_SECONDS)
        assert not reader.is_alive()
        assert len(server.requests) == 1


def test_closing_ends_the_wait_for_an_async_retry(waiting: threading.Event) -> None:
    async def run(server: FakeServer) -> None:
        async with AsyncClient(server.address) as client:
            stream = client.stream("Hi")
            reader = asyncio.create_task(anext(stream, None))
            assert await asyncio.to_thread(waiting.wait, PATIENCE_SECONDS)
            await stream.aclose()
            assert await asyncio.wait_for(reader, PATIENCE_SECONDS) is None
            assert len(server.requests) == 1

    with FakeServer(failure(grpc.StatusCode.UNAVAILABLE, "full")) as server:
        asyncio.run(run(server))


def test_a_watch(server: FakeServer) -> None:
    with Client(server.address) as client, client.watch_cache_stats() as watch:
        assert next(watch).blocks_total == 4
        assert not server.ended.is_set()
        watch.close()
        assert ended(server)


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Python's own handling of SIGINT, also where a shell started the tests in the background, with SIGINT ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_during_a_whole_answer(server: FakeServer) -> None:
    def interrupt() -> None:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    with Client(server.address) as client:
        interrupter = threading.Thread(target=when_arrived, args=(server, interrupt))
        interrupter.start()
        with pytest.raises(KeyboardInterrupt) as caught:
            client.generate("Hi")
        assert ended(server)  # while the error still holds the call: nothing is left to the garbage collector
        del caught
        interrupter.join()


def test_closing_the_client_ends_its_calls(server: FakeServer) -> None:
    client = Client(server.address)
    closer = threading.Thread(target=when_arrived, args=(server, client.close))
    closer.start()
    with pytest.raises(QuireError) as caught:
        client.generate("Hi")
    assert caught.value.code is grpc.StatusCode.CANCELLED
    assert ended(server)
    closer.join()


def test_the_end_of_the_async_with_block(server: FakeServer) -> None:
    async def run() -> None:
        async with AsyncClient(server.address) as client:
            async with client.stream("Hi") as stream:
                assert (await anext(stream)).text == "Hello"
                assert not server.ended.is_set()
            assert await has_ended(server)
            assert [chunk async for chunk in stream] == []

    asyncio.run(run())


def test_an_async_stream_that_is_forgotten(server: FakeServer) -> None:
    async def run() -> None:
        async with AsyncClient(server.address) as client:
            async for _ in client.stream("Hi"):
                break
            gc.collect()
            assert await has_ended(server)

    asyncio.run(run())


def test_a_cancelled_task_ends_its_whole_answer(server: FakeServer) -> None:
    async def run() -> None:
        async with AsyncClient(server.address) as client:
            task = asyncio.create_task(client.generate("Hi"))
            await arrived(server)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await has_ended(server)

    asyncio.run(run())


def test_a_cancelled_task_ends_its_stream(server: FakeServer) -> None:
    async def run() -> None:
        async with AsyncClient(server.address) as client:
            task = asyncio.create_task(client.stream("Hi").result())
            await arrived(server)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await has_ended(server)

    asyncio.run(run())


def test_another_task_closes_the_stream(server: FakeServer) -> None:
    async def run() -> None:
        async with AsyncClient(server.address) as client:
            stream = client.stream("Hi")
            assert (await anext(stream)).text == "Hello"
            reader = asyncio.create_task(anext(stream, None))
            await asyncio.sleep(0)  # until it waits
            await stream.aclose()
            assert await reader is None
            assert await has_ended(server)

    asyncio.run(run())


@pytest.mark.parametrize("streamed", [False, True])
def test_closing_the_async_client_ends_its_calls(server: FakeServer, streamed: bool) -> None:
    async def run() -> None:
        client = AsyncClient(server.address)
        call = client.stream("Hi").result() if streamed else client.generate("Hi")
        task = asyncio.create_task(call)
        await arrived(server)
        await client.close()
        with pytest.raises(QuireError) as caught:
            await task
        assert caught.value.code is grpc.StatusCode.CANCELLED
        assert await has_ended(server)

    asyncio.run(run())
