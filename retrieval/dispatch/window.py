"""The mean of the logarithms of some times, and how far chance alone may have moved it.

Times to first token spread over orders of magnitude: prompts differ in length, and a prefix that the server had cached
costs almost nothing. The logarithm makes a mean of them that neither a few long prompts nor a few cached ones decide.
"""

from __future__ import annotations

import math

_SHARE = 0.25  # of the limit, at least
_ERROR = 0.2  # of the mean, that is good enough: a fifth more or less
_LEAST_NS = 10_000_000  # times below are taken for this: what they differ by is our own event loop
_PATIENCE = 6  # times as many are taken at most until it is


class Window:
    """Times of requests that were sent since it was opened, under one limit; the mean by Welford's method (1962)."""

    def __init__(self, limit: int, opened_ns: int) -> None:
        self.limit = limit
        self.opened_ns = opened_ns
        self.count = 0
        self.mean = 0.0  # of the logarithms of nanoseconds
        self.most_running = 0
        self._squares = 0.0

    def settled(self, times: int) -> bool:
        """Whether there are enough to judge by: so many or a share of a round, and more where they spread widely."""
        least = max(times, self.limit * _SHARE)
        return self.count >= least and (self.error <= _ERROR or self.count >= _PATIENCE * least)

    @property
    def full(self) -> bool:
        """Whether the limit was reached."""
        return self.most_running >= self.limit

    @property
    def light(self) -> bool:
        """Whether so few requests ran that the limit had no part in how long they took."""
        return self.most_running <= max(1, self.limit // 2)

    def sent(self, running: int) -> None:
        """Notes that a request was sent while so many run, itself included."""
        self.most_running = max(self.most_running, running)

    def add(self, elapsed_ns: int) -> None:
        """Takes one more time."""
        value = math.log(max(_LEAST_NS, elapsed_ns))
        self.count += 1
        off = value - self.mean
        self.mean += off / self.count
        self._squares += off * (value - self.mean)

    @property
    def error(self) -> float:
        """The standard error of `mean`; 0 of fewer than two times."""
        if self.count < 2:
            return 0.0
        return math.sqrt(self._squares / (self.count - 1) / self.count)
