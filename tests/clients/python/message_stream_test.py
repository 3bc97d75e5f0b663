"""A stream that another thread closes at the worst moments, which a real thread would seldom meet."""
from collections.abc import Callable

import grpc

from quire_client import RetryPolicy
from quire_client.message_stream import MessageStream
from quire_client.retry_policy import Attempts


class Unavailable(grpc.RpcError):
    def code(self) -> grpc.StatusCode:
        return grpc.StatusCode.UNAVAILABLE

    def details(self) -> str:
        return "gone"

    def trailing_metadata(self) -> tuple[()]:
        return ()


class FailingCall:
    """Whose only answer is a failure, after something else has happened."""

    def __init__(self, meanwhile: Callable[[], None]) -> None:
        self.cancelled = False
        self._meanwhile = meanwhile

    def __next__(self) -> str:
        self._meanwhile()
        raise Unavailable

    def cancel(self) -> None:
        self.cancelled = True


def stream_of(open_call: Callable[[float | None], FailingCall], retries: int) -> MessageStream[str]:
    attempts = Attempts(RetryPolicy(max_retries=retries, first_delay=0), timeout=None)
    return MessageStream(open_call, attempts, commits=lambda message: True)


def test_closed_while_a_message_is_waited_for() -> None:
    stream = stream_of(lambda seconds_left: FailingCall(lambda: stream.close()), retries=0)
    assert list(stream) == []


def test_closed_while_the_next_attempt_is_begun() -> None:
    calls: list[FailingCall] = []

    def open_call(seconds_left: float | None) -> FailingCall:
        if calls:
            stream.close()
        calls.append(FailingCall(lambda: None))
        return calls[-1]

    stream = stream_of(open_call, retries=1)
    assert list(stream) == []
    assert [call.cancelled for call in calls] == [True, True]
