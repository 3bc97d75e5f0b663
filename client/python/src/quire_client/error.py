"""What a call that failed says."""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Protocol, cast

import grpc
from google.protobuf.message import DecodeError
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo, RetryInfo
from google.rpc.status_pb2 import Status

_DETAILS_KEY = "grpc-status-details-bin"


class _FailedCall(Protocol):
    """What the errors of grpc and of grpc.aio have in common."""

    def code(self) -> grpc.StatusCode: ...
    def details(self) -> str | None: ...
    def trailing_metadata(self) -> Iterable[tuple[str, str | bytes]] | None: ...


@dataclass(frozen=True)
class FieldViolation:
    """A field of the request that is wrong, and why."""

    field: str
    description: str


class QuireError(Exception):
    """A call failed.

    code              the gRPC status code
    message           one sentence: what was expected and what arrived
    reason            upper case, stable, for programs to compare; None if the server did not answer
    field_violations  with INVALID_ARGUMENT: the fields that are wrong
    retry_delay       seconds after which the server says that trying again makes sense; None if it does not
    """

    def __init__(self, code: grpc.StatusCode, message: str) -> None:
        super().__init__(code, message)
        self.code = code
        self.message = message
        self.reason: str | None = None
        self.field_violations: tuple[FieldViolation, ...] = ()
        self.retry_delay: float | None = None

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"

    @classmethod
    def client_closed(cls) -> QuireError:
        return cls(grpc.StatusCode.CANCELLED, "the client was closed during the call")

    @classmethod
    def from_rpc_error(cls, rpc_error: grpc.RpcError) -> QuireError:
        call = cast(_FailedCall, rpc_error)
        error = cls(call.code(), call.details() or "")
        for detail in _details(call):
            error._add_detail(detail)
        return error

    def _add_detail(self, detail: Any) -> None:
        bad_request, retry_info, error_info = BadRequest(), RetryInfo(), ErrorInfo()
        if detail.Unpack(bad_request):
            violations = (FieldViolation(each.field, each.description) for each in bad_request.field_violations)
            self.field_violations += tuple(violations)
        elif detail.Unpack(retry_info):
            delay = retry_info.retry_delay
            self.retry_delay = max(0.0, delay.seconds + delay.nanos / 1e9)
        elif detail.Unpack(error_info):
            self.reason = error_info.reason


def _details(call: _FailedCall) -> list[Any]:
    metadata = {key: value for key, value in call.trailing_metadata() or ()}  # not a mapping in every grpcio
    try:
        return list(Status.FromString(cast(bytes, metadata.get(_DETAILS_KEY, b""))).details)
    except DecodeError:
        return []  # code and message still stand
