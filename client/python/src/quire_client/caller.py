"""Makes calls: metadata, deadline, attempts, and errors as QuireError."""
from __future__ import annotations

import time
from collections.abc import Callable
from typing import Protocol, TypeVar

import grpc

from quire_client.connection import Metadata
from quire_client.error import QuireError
from quire_client.message_stream import MessageStream, OpenCall
from quire_client.retry_policy import Attempts, RetryPolicy

Request = TypeVar("Request")
Response = TypeVar("Response")
StreamedRequest = TypeVar("StreamedRequest", contravariant=True)
StreamedResponse = TypeVar("StreamedResponse", covariant=True)


class StreamMethod(Protocol[StreamedRequest, StreamedResponse]):
    def __call__(
        self, request: StreamedRequest, timeout: float | None, metadata: Metadata
    ) -> OpenCall[StreamedResponse]: ...


class Caller:
    def __init__(self, metadata: Metadata, retry: RetryPolicy) -> None:
        self._metadata = metadata
        self._retry = retry

    def unary(
        self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request, timeout: float | None
    ) -> Response:
        attempts = Attempts(self._retry, timeout)
        while True:
            try:
                return self.once(method, request, attempts.seconds_left())
            except QuireError as error:
                delay = attempts.delay_after(error)
                if delay is None:
                    raise
            time.sleep(delay)

    def once(
        self, method: grpc.UnaryUnaryMultiCallable[Request, Response], request: Request, timeout: float | None
    ) -> Response:
        call = method.future(request, timeout=timeout, metadata=self._metadata)
        try:
            return call.result()
        except grpc.RpcError as rpc_error:
            raise QuireError.from_rpc_error(rpc_error) from rpc_error
        except grpc.FutureCancelledError as cancelled:
            raise QuireError.client_closed() from cancelled
        except BaseException:  # Ctrl-C ends the request at the server too
            call.cancel()
            raise

    def stream(
        self,
        method: StreamMethod[Request, Response],
        request: Request,
        timeout: float | None,
        commits: Callable[[Response], bool],
    ) -> MessageStream[Response]:
        def open_call(seconds_left: float | None) -> OpenCall[Response]:
            return method(request, timeout=seconds_left, metadata=self._metadata)

        return MessageStream(open_call, Attempts(self._retry, timeout), commits)
