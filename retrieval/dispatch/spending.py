"""How many requests may be sent besides those that were asked for: retries and hedges, each with a budget of its own.

Without one, a backend that is down or slow would get the more requests the worse it does.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable

RESERVE = 3
"""Retries that a quiet service has in hand."""

RESERVE_PER_S = 0.3
"""How soon it has them again."""

_BURST_REQUESTS = 200  # what so many requests earn is the most that is saved
_WINDOW_REQUESTS = 1000


class RetryBudget:
    """A token bucket: each request earns a share of a retry, and a little comes by itself with time."""

    def __init__(self, share: Callable[[], float], now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self._share = share
        self._now_ns = now_ns
        self._balance = float(RESERVE)
        self._filled_ns = now_ns()

    def count(self) -> None:
        """Notes a request."""
        self._balance = min(max(RESERVE, self._share() * _BURST_REQUESTS), self._balance + self._share())

    def take(self) -> bool:
        """Takes a retry, if there is one; never with a share of 0."""
        at_ns = self._now_ns()
        earned = (at_ns - self._filled_ns) / 1e9 * RESERVE_PER_S
        self._filled_ns = at_ns
        self._balance = max(self._balance, min(RESERVE, self._balance + earned))
        if self._balance < 1 or not self._share():
            return False
        self._balance -= 1
        return True


class HedgeBudget:
    """Hedges as a share of the last requests: of any so many requests in a row, no more than that share are hedged."""

    def __init__(self, share: Callable[[], float]) -> None:
        self._share = share
        self._requests = 0
        self._hedges = deque[int]()  # the number of the request at which each was sent

    def count(self) -> None:
        """Notes a request."""
        self._requests += 1
        while self._hedges and self._hedges[0] <= self._requests - _WINDOW_REQUESTS:
            self._hedges.popleft()

    def take(self) -> bool:
        """Takes a hedge, if there is one."""
        if len(self._hedges) + 1 > self._share() * min(self._requests, _WINDOW_REQUESTS):
            return False
        self._hedges.append(self._requests)
        return True
