"""Options, and the ways in which a client asks."""
import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from quire_client import AsyncClient, Client, Generation


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--server", help="HOST:PORT of a quire-server with the default model")


@pytest.fixture
def address(request: pytest.FixtureRequest) -> str:
    value = request.config.getoption("--server")
    if value is None:
        pytest.skip("needs --server HOST:PORT")
    return str(value)


def ask_whole(address: str, **options: Any) -> Generation:
    with Client(address, **options) as client:
        return client.generate("Hi")


def ask_streamed(address: str, **options: Any) -> Generation:
    with Client(address, **options) as client, client.stream("Hi") as stream:
        return stream.result()


def ask_whole_async(address: str, **options: Any) -> Generation:
    async def ask() -> Generation:
        async with AsyncClient(address, **options) as client:
            return await client.generate("Hi")

    return asyncio.run(ask())


def ask_streamed_async(address: str, **options: Any) -> Generation:
    async def ask() -> Generation:
        async with AsyncClient(address, **options) as client, client.stream("Hi") as stream:
            return await stream.result()

    return asyncio.run(ask())


Ask = Callable[..., Generation]


@pytest.fixture(params=[ask_streamed, ask_streamed_async])
def ask_stream(request: pytest.FixtureRequest) -> Iterator[Ask]:
    yield request.param


@pytest.fixture(params=[ask_whole, ask_streamed, ask_whole_async, ask_streamed_async])
def ask(request: pytest.FixtureRequest) -> Iterator[Ask]:
    """Both clients, whole and streamed: called with an address and options of the client."""
    yield request.param
