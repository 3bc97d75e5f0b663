"""The messages of one streaming call, for asyncio."""
from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

import grpc.aio

from quire_client.cancellation import current_task_is_cancelled
from quire_client.error import QuireError
from quire_client.retry_policy import Attempts

Message = TypeVar("Message")
Response = TypeVar("Response", covariant=True)


class OpenAsyncCall(Protocol[Response]):
    """What is needed of a call in flight."""

    def __aiter__(self) -> AsyncIterator[Response]: ...
    def cancel(self) -> object: ...


class AsyncMessageStream(Generic[Message], AsyncIterator[Message]):
    """Iterates over the messages. Leaving it early ends the call at the server: use it as an async context manager, or
    call `aclose`. The call is made when the stream is."""

    def __init__(
        self,
        open_call: Callable[[float | None], OpenAsyncCall[Message]],
        attempts: Attempts,
        commits: Callable[[Message], bool],
    ) -> None:
        """`open_call` takes the seconds that are left; after a message that `commits`, no further attempt is made."""
        self._open_call = open_call
        self._attempts = attempts
        self._commits = commits
        self._committed = False
        self._closed = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._call = open_call(attempts.seconds_left())

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Message:
        while not self._closed.is_set():
            try:
                message = await anext(aiter(self._call))
            except grpc.aio.AioRpcError as rpc_error:
                await self._try_again(rpc_error)
            except asyncio.CancelledError as cancelled:
                was_closed = self._closed.is_set()
                self._close()
                if current_task_is_cancelled():
                    raise
                if not was_closed:
                    raise QuireError.client_closed() from cancelled
            except BaseException:
                self._close()
                raise
            else:
                self._committed = self._committed or self._commits(message)
                return message
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Ends the call, if it has not ended by itself."""
        self._close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._close()

    def __del__(self) -> None:
        # A call that is only forgotten would go on. This may run in any thread.
        call = getattr(self, "_call", None)  # none: it could not be opened
        if call is not None and not self._closed.is_set() and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call.cancel)

    def _close(self) -> None:
        self._closed.set()
        self._call.cancel()

    async def _try_again(self, rpc_error: grpc.aio.AioRpcError) -> None:
        error = QuireError.from_rpc_error(rpc_error)
        delay = None if self._committed else self._attempts.delay_after(error)
        if delay is None:
            self._close()
            raise error from rpc_error
        try:
            await asyncio.wait_for(self._closed.wait(), delay)
        except TimeoutError:
            self._call = self._open_call(self._attempts.seconds_left())
