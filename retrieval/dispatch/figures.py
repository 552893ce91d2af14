"""What one server has done of late: how soon it answers, how fast it writes, how much.

A window holds so many values at most and none that is older than some minutes, and keeps them in order besides: a
quantile is one look-up, a new value one shift in a short list.
"""

from __future__ import annotations

import math
import time
from bisect import bisect_left, insort
from collections import deque
from collections.abc import Callable

WINDOW_COUNT = 256
"""Values that a window of figures holds at most."""

WINDOW_NS = 300 * 10**9
"""How old a figure may be."""

MIN_FIRST_TOKENS = 20
"""First tokens that must be known of a server before its quantiles say anything."""

_PATIENCE = 4  # times the 95th percentile
_PATIENCE_NS = 10**9
_PATIENCE_UNKNOWN_NS = 10 * 10**9


class Recent:
    """The integers of late: the newest `size` at most, none older than `age_ns`."""

    def __init__(
        self, size: int = WINDOW_COUNT, age_ns: int = WINDOW_NS, now_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._size = size
        self._age_ns = age_ns
        self._now_ns = now_ns
        self._arrivals = deque[tuple[int, int]]()  # when, what
        self._ordered = list[int]()
        self._sum = 0

    def __len__(self) -> int:
        self._forget()
        return len(self._ordered)

    def add(self, value: int) -> None:
        """Takes a value in."""
        self._arrivals.append((self._now_ns(), value))
        insort(self._ordered, value)
        self._sum += value
        if len(self._ordered) > self._size:
            self._drop_oldest()

    def quantile(self, share: float) -> int:
        """Returns the least value that `share` of the values, in (0, 1], do not exceed; 0 when there are none."""
        self._forget()
        if not self._ordered:
            return 0
        return self._ordered[max(0, math.ceil(share * len(self._ordered)) - 1)]

    @property
    def mean(self) -> float:
        """Their mean; 0 when there are none."""
        self._forget()
        return self._sum / len(self._ordered) if self._ordered else 0.0

    def _forget(self) -> None:
        oldest_ns = self._now_ns() - self._age_ns
        while self._arrivals and self._arrivals[0][0] < oldest_ns:
            self._drop_oldest()

    def _drop_oldest(self) -> None:
        _, value = self._arrivals.popleft()
        del self._ordered[bisect_left(self._ordered, value)]
        self._sum -= value


class LiveFigures:
    """The figures of one server. For one event loop."""

    def __init__(self, now_ns: Callable[[], int] = time.monotonic_ns) -> None:
        self.first_token_ns = Recent(now_ns=now_ns)  # from sending to the first piece
        self.token_ns = Recent(now_ns=now_ns)  # between later tokens: one value an answer, its mean
        self.output_tokens = Recent(now_ns=now_ns)  # of whole answers

    @property
    def patience_ns(self) -> int:
        """Silence before a first piece that is far beyond the usual: a server that is so silent hangs."""
        if len(self.first_token_ns) < MIN_FIRST_TOKENS:
            return _PATIENCE_UNKNOWN_NS
        return max(_PATIENCE_NS, _PATIENCE * self.first_token_ns.quantile(0.95))

    def began(self, first_token_ns: int) -> None:
        """Notes how long a first piece took, or had taken at least when it was no longer waited for."""
        self.first_token_ns.add(first_token_ns)

    def ended(self, token_ns: int, output_tokens: int) -> None:
        """Notes a whole answer; `token_ns` is 0 when it had no second token."""
        self.output_tokens.add(output_tokens)
        if token_ns:
            self.token_ns.add(token_ns)
