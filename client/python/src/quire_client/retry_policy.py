"""Whether and when a call that failed is made again."""
from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass

import grpc

from quire_client.error import QuireError

# Only these pass by themselves.
_TRANSIENT = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED)
_MAX_DOUBLINGS = 20


@dataclass(frozen=True)
class RetryPolicy:
    """max_retries   after the first attempt; 0 never tries again
    first_delay   seconds before the first retry, doubled for each further one, where the server names no delay
    max_delay     seconds; above it, the server's own wish is cut too
    """

    max_retries: int = 3
    first_delay: float = 0.5
    max_delay: float = 30.0

    def delay_before(self, retry: int, error: QuireError, spread: float) -> float | None:
        """Seconds to wait before retry number `retry`, counted from 0; None: give up.

        `spread` in [0, 1) draws callers apart: the wait grows by at most a half, and is never shorter than asked for.
        """
        if error.code not in _TRANSIENT or retry >= self.max_retries:
            return None
        doubled: float = self.first_delay * 2 ** min(retry, _MAX_DOUBLINGS)
        delay = min(doubled if error.retry_delay is None else error.retry_delay, self.max_delay)
        return delay * (1 + spread / 2)


class Attempts:
    """The attempts of one call: what is left of its timeout, and how long to wait before the next."""

    def __init__(
        self,
        policy: RetryPolicy,
        timeout: float | None,
        clock: Callable[[], float] = time.monotonic,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self._policy = policy
        self._clock = clock
        self._draw = draw
        self._deadline = None if timeout is None else clock() + timeout
        self._retries = 0

    def seconds_left(self) -> float | None:
        return None if self._deadline is None else self._deadline - self._clock()

    def delay_after(self, error: QuireError) -> float | None:
        """Seconds to wait before the next attempt; None: there is none, or no time for one."""
        delay = self._policy.delay_before(self._retries, error, self._draw())
        left = self.seconds_left()
        if delay is None or (left is not None and delay >= left):
            return None
        self._retries += 1
        return delay
