"""Lets a fault that repeats with every request be told now and then."""

from __future__ import annotations

import time
from collections.abc import Callable

_PAUSE_S = 60.0


class Seldom:
    """True at most once a minute."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._next_s = float("-inf")

    def due(self) -> bool:
        """Tells whether the fault may be told now, and begins the next pause if so."""
        now_s = self._clock()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + _PAUSE_S
        return True
