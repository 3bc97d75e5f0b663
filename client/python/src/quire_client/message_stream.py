"""The messages of one streaming call."""
from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Generic, Protocol, Self, TypeVar

import grpc

from quire_client.error import QuireError
from quire_client.retry_policy import Attempts

Message = TypeVar("Message")
Response = TypeVar("Response", covariant=True)


class OpenCall(Protocol[Response]):
    """What is needed of a call in flight."""

    def __next__(self) -> Response: ...
    def cancel(self) -> object: ...


class MessageStream(Generic[Message], Iterator[Message]):
    """Iterates over the messages. Leaving it early ends the call at the server: use it as a context manager, or call
    `close`, which any thread may do. The call is made when the stream is."""

    def __init__(
        self,
        open_call: Callable[[float | None], OpenCall[Message]],
        attempts: Attempts,
        commits: Callable[[Message], bool],
    ) -> None:
        """`open_call` takes the seconds that are left; after a message that `commits`, no further attempt is made."""
        self._open_call = open_call
        self._attempts = attempts
        self._commits = commits
        self._committed = False
        self._closed = threading.Event()
        self._call = open_call(attempts.seconds_left())

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Message:
        while not self._closed.is_set():
            try:
                message = next(self._call)
            except grpc.RpcError as rpc_error:
                self._try_again(rpc_error)
            except BaseException:  # the end, or Ctrl-C
                self.close()
                raise
            else:
                self._committed = self._committed or self._commits(message)
                return message
        raise StopIteration

    def close(self) -> None:
        """Ends the call, if it has not ended by itself."""
        self._closed.set()
        self._call.cancel()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _try_again(self, rpc_error: grpc.RpcError) -> None:
        if self._closed.is_set():
            return  # it is the error of having been closed
        error = QuireError.from_rpc_error(rpc_error)
        delay = None if self._committed else self._attempts.delay_after(error)
        if delay is None:
            self.close()
            raise error from rpc_error
        if self._closed.wait(delay):
            return
        self._call = self._open_call(self._attempts.seconds_left())
        if self._closed.is_set():  # meanwhile, by another thread, which may have cancelled the call before
            self._call.cancel()
