"""When a call is made again, and after how long: pure."""
import grpc
import pytest

from quire_client import QuireError, RetryPolicy
from quire_client.retry_policy import Attempts

POLICY = RetryPolicy(max_retries=5, first_delay=0.5, max_delay=3)


def error(code: grpc.StatusCode = grpc.StatusCode.UNAVAILABLE, retry_delay: float | None = None) -> QuireError:
    failed = QuireError(code, "no")
    failed.retry_delay = retry_delay
    return failed


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_delay_doubles_up_to_its_limit() -> None:
    assert [POLICY.delay_before(retry, error(), spread=0) for retry in range(6)] == [0.5, 1, 2, 3, 3, None]


def test_the_server_is_believed_up_to_the_limit() -> None:
    assert POLICY.delay_before(4, error(retry_delay=0.02), spread=0) == 0.02
    assert POLICY.delay_before(0, error(retry_delay=0), spread=0) == 0
    assert POLICY.delay_before(0, error(retry_delay=60), spread=0) == 3


def test_chance_adds_up_to_a_half() -> None:
    assert POLICY.delay_before(0, error(retry_delay=1), spread=0.5) == 1.25
    assert POLICY.delay_before(1, error(), spread=1) == 1.5


def test_very_many_retries_do_not_overflow() -> None:
    assert RetryPolicy(max_retries=10**6).delay_before(10**5, error(), spread=0) == 30


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
def test_only_what_passes_by_itself_is_tried_again(code: grpc.StatusCode) -> None:
    transient = code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert (POLICY.delay_before(0, error(code, retry_delay=1), spread=0) is not None) == transient


def test_attempts_count_the_retries() -> None:
    attempts = Attempts(RetryPolicy(max_retries=2, first_delay=1), None, Clock(), draw=lambda: 0)
    assert [attempts.delay_after(error()) for _ in range(3)] == [1, 2, None]


def test_a_wait_past_the_deadline_is_not_begun() -> None:
    clock = Clock()
    attempts = Attempts(RetryPolicy(first_delay=1), 5, clock, draw=lambda: 0)
    assert attempts.delay_after(error(retry_delay=4)) == 4
    clock.now += 4
    assert attempts.seconds_left() == 1
    assert attempts.delay_after(error(retry_delay=1)) is None


def test_without_a_timeout_nothing_ends() -> None:
    assert Attempts(POLICY, None).seconds_left() is None
