"""Failures as QuireError."""
import pickle

import grpc
import pytest
from conftest import Ask
from fake_server import FakeServer, failure
from google.rpc.error_details_pb2 import BadRequest, ErrorInfo

from quire_client import FieldViolation, QuireError, RetryPolicy

INVALID = failure(
    grpc.StatusCode.INVALID_ARGUMENT,
    "temperature: got -1",
    BadRequest(field_violations=[BadRequest.FieldViolation(field="temperature", description="got -1")]),
    ErrorInfo(reason="INVALID_ARGUMENT", domain="quire"),
)
ONCE = RetryPolicy(max_retries=0)


def error_of(ask: Ask, address: str, **options: object) -> QuireError:
    with pytest.raises(QuireError) as caught:
        ask(address, **options)
    return caught.value


def test_details_are_read(ask: Ask) -> None:
    with FakeServer(INVALID) as server:
        error = error_of(ask, server.address)
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT
    assert error.message == "temperature: got -1"
    assert str(error) == "INVALID_ARGUMENT: temperature: got -1"
    assert error.reason == "INVALID_ARGUMENT"
    assert error.field_violations == (FieldViolation("temperature", "got -1"),)
    assert error.retry_delay is None
    assert isinstance(error.__cause__, grpc.RpcError)


def test_details_that_cannot_be_read_leave_code_and_message(ask: Ask) -> None:
    def script(request, context):  # type: ignore[no-untyped-def]
        context.set_trailing_metadata((("grpc-status-details-bin", b"\xff\xff"),))
        context.abort(grpc.StatusCode.INTERNAL, "broken")
        yield

    with FakeServer(script) as server:
        error = error_of(ask, server.address)
    assert (error.code, error.message, error.reason) == (grpc.StatusCode.INTERNAL, "broken", None)


def test_a_server_that_is_not_there(ask: Ask) -> None:
    with FakeServer() as server:
        address = server.address
    error = error_of(ask, address, retry=ONCE)
    assert error.code is grpc.StatusCode.UNAVAILABLE and error.reason is None and error.message


def test_a_deadline(ask: Ask) -> None:
    server = FakeServer(lambda request, context: server.hold(request, context))
    with server:
        assert error_of(ask, server.address, timeout=0.2).code is grpc.StatusCode.DEADLINE_EXCEEDED


def test_errors_cross_processes(ask: Ask) -> None:
    with FakeServer(INVALID) as server:
        error = error_of(ask, server.address)
    error.__cause__ = None
    copy = pickle.loads(pickle.dumps(error))
    assert (copy.code, str(copy), copy.field_violations) == (error.code, str(error), error.field_violations)
