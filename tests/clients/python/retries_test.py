"""Retries as a server sees them, of both clients, whole and streamed."""
from typing import Any

import grpc
import pytest
from conftest import Ask
from fake_server import PATIENCE_SECONDS, FakeServer, answer, chunk, failure, started
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo

from quire_client import Client, QuireError, RetryPolicy

# Waiting by the policy's own delay would pass the deadline, so that a call that goes on has obeyed the server.
ONLY_THE_SERVERS_DELAY: dict[str, Any] = {
    "timeout": PATIENCE_SECONDS,
    "retry": RetryPolicy(first_delay=3600, max_delay=3600),
}
TOO_LATE = PATIENCE_SECONDS + 1
AT_ONCE: dict[str, Any] = {"timeout": PATIENCE_SECONDS, "retry": RetryPolicy(max_retries=2, first_delay=0)}


def retry_after(seconds: float) -> RetryInfo:
    return RetryInfo(retry_delay=Duration(seconds=int(seconds), nanos=int(seconds % 1 * 1e9)))


@pytest.mark.parametrize("code", [grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED])
def test_the_wait_is_what_the_server_says(ask: Ask, code: grpc.StatusCode) -> None:
    with FakeServer(failure(code, "full", retry_after(0.01)), answer) as server:
        assert ask(server.address, **ONLY_THE_SERVERS_DELAY).text == "Hello you"
        assert len(server.requests) == 2


def test_without_a_wish_the_policy_waits(ask: Ask) -> None:
    with FakeServer(failure(grpc.StatusCode.UNAVAILABLE, "full"), answer) as server:
        assert ask(server.address, **AT_ONCE).text == "Hello you"
        assert len(server.requests) == 2


def test_retries_are_counted(ask: Ask) -> None:
    with FakeServer(failure(grpc.StatusCode.UNAVAILABLE, "full")) as server:
        with pytest.raises(QuireError, match="UNAVAILABLE: full"):
            ask(server.address, **AT_ONCE)
        assert len(server.requests) == 3


def test_a_wish_past_the_deadline_ends_the_call_at_once(ask: Ask) -> None:
    with FakeServer(failure(grpc.StatusCode.RESOURCE_EXHAUSTED, "full", retry_after(TOO_LATE)), answer) as server:
        with pytest.raises(QuireError) as caught:
            ask(server.address, **ONLY_THE_SERVERS_DELAY)
        assert caught.value.code is grpc.StatusCode.RESOURCE_EXHAUSTED and caught.value.retry_delay == TOO_LATE
        assert len(server.requests) == 1


@pytest.mark.parametrize("code", [grpc.StatusCode.INTERNAL, grpc.StatusCode.ABORTED, grpc.StatusCode.UNKNOWN])
def test_other_failures_are_final(ask: Ask, code: grpc.StatusCode) -> None:
    with FakeServer(failure(code, "broken", retry_after(0)), answer) as server:
        with pytest.raises(QuireError):
            ask(server.address, **AT_ONCE)
        assert len(server.requests) == 1


def test_a_stream_that_has_only_started_is_tried_again(ask_stream: Ask) -> None:
    with FakeServer(failure(grpc.StatusCode.UNAVAILABLE, "gone", after=(started(),)), answer) as server:
        assert ask_stream(server.address, **AT_ONCE).text == "Hello you"
        assert len(server.requests) == 2


def test_a_stream_that_has_said_something_is_not(ask_stream: Ask) -> None:
    script = failure(grpc.StatusCode.UNAVAILABLE, "gone", retry_after(0), after=(started(), chunk("Hello", 1)))
    with FakeServer(script, answer) as server:
        with pytest.raises(QuireError, match="UNAVAILABLE: gone"):
            ask_stream(server.address, **AT_ONCE)
        assert len(server.requests) == 1


def test_what_came_before_a_failure_is_kept() -> None:
    script = failure(grpc.StatusCode.INTERNAL, "gone", after=(started(), chunk("Hello", 1)))
    with FakeServer(script) as server, Client(server.address) as client, client.stream("Hi") as stream:
        assert next(stream).text == "Hello"
        with pytest.raises(QuireError, match="INTERNAL: gone"):
            next(stream)
        assert list(stream) == []
        with pytest.raises(RuntimeError, match="no whole answer"):
            stream.result()
