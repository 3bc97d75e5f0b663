"""Makes calls for asyncio: metadata, deadline, attempts, and errors as QuireError."""
from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar
from weakref import WeakSet

import grpc.aio

from quire_client.async_message_stream import AsyncMessageStream, OpenAsyncCall
from quire_client.cancellation import current_task_is_cancelled
from quire_client.connection import Metadata
from quire_client.error import QuireError
from quire_client.retry_policy import Attempts, RetryPolicy

Request = TypeVar("Request")
Response = TypeVar("Response")


class AsyncCaller:
    def __init__(self, metadata: Metadata, retry: RetryPolicy) -> None:
        self._metadata = metadata
        self._retry = retry
        self._open_calls: WeakSet[grpc.aio.Call] = WeakSet()

    async def unary(
        self, method: grpc.aio.UnaryUnaryMultiCallable[Request, Response], request: Request, timeout: float | None
    ) -> Response:
        attempts = Attempts(self._retry, timeout)
        while True:
            try:
                return await self.once(method, request, attempts.seconds_left())
            except QuireError as error:
                delay = attempts.delay_after(error)
                if delay is None:
                    raise
            await asyncio.sleep(delay)

    async def once(
        self, method: grpc.aio.UnaryUnaryMultiCallable[Request, Response], request: Request, timeout: float | None
    ) -> Response:
        call = method(request, timeout=timeout, metadata=self._metadata)
        self._open_calls.add(call)
        try:
            return await call
        except grpc.aio.AioRpcError as rpc_error:
            raise QuireError.from_rpc_error(rpc_error) from rpc_error
        except asyncio.CancelledError as cancelled:
            if current_task_is_cancelled():  # which has cancelled the call
                raise
            raise QuireError.client_closed() from cancelled

    def stream(
        self,
        method: grpc.aio.UnaryStreamMultiCallable[Request, Response],
        request: Request,
        timeout: float | None,
        commits: Callable[[Response], bool],
    ) -> AsyncMessageStream[Response]:
        def open_call(seconds_left: float | None) -> OpenAsyncCall[Response]:
            call = method(request, timeout=seconds_left, metadata=self._metadata)
            self._open_calls.add(call)
            return call

        return AsyncMessageStream(open_call, Attempts(self._retry, timeout), commits)

    def cancel_all(self) -> None:
        """Ends the calls that are open. Closing their channel does not do so in every grpcio."""
        for call in list(self._open_calls):
            call.cancel()
