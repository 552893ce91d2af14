"""Lets so many requests run at once and so many wait; the rest are refused at once.

First come, first served. A permit is given from hand to hand, so a request that waits is never overtaken by a new one.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque

from retrieval.deadline import Deadline
from retrieval.errors import Overloaded


class Admission:
    """Bounds the requests that run at once. The bounds may change while it works."""

    def __init__(self, max_concurrent: int, max_queued: int, max_wait_ms: int) -> None:
        self._running = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self.set_bounds(max_concurrent, max_queued, max_wait_ms)

    def set_bounds(self, max_concurrent: int, max_queued: int, max_wait_ms: int) -> None:
        """Takes new bounds; requests that run or wait are not touched by smaller ones."""
        self._max_concurrent = max_concurrent
        self._max_queued = max_queued
        self._max_wait_ms = max_wait_ms
        while self._waiting and self._running < self._max_concurrent:
            self._hand_on()

    @property
    def running(self) -> int:
        """Requests that hold a permit."""
        return self._running

    @property
    def waiting(self) -> int:
        """Requests that wait for one."""
        return len(self._waiting)

    async def acquire(self, deadline: Deadline) -> int:
        """Takes a permit, which `release` gives back, and returns the nanoseconds that it waited.

        Raises:
            Overloaded: too many wait already, or none became free in time.
        """
        if self._running < self._max_concurrent and not self._waiting:
            self._running += 1
            return 0
        if len(self._waiting) >= self._max_queued:
            raise self._overloaded()
        asked_ns = time.monotonic_ns()
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            async with asyncio.timeout(min(self._max_wait_ms / 1e3, max(0.0, deadline.remaining_s()))):
                await turn
        except TimeoutError as error:
            self._withdraw(turn)
            raise self._overloaded() from error
        except asyncio.CancelledError:
            self._withdraw(turn)
            raise
        return time.monotonic_ns() - asked_ns

    def _withdraw(self, turn: asyncio.Future[None]) -> None:
        if turn in self._waiting:
            self._waiting.remove(turn)
        elif turn.done() and not turn.cancelled():
            self.release()  # the permit came at the same moment

    def release(self) -> None:
        """Gives a permit to who has waited longest, or back."""
        self._running -= 1
        if self._running < self._max_concurrent:
            self._hand_on()

    def _hand_on(self) -> None:
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                self._running += 1
                turn.set_result(None)
                return

    def _overloaded(self) -> Overloaded:
        return Overloaded("running requests", self._max_concurrent, float(self._max_wait_ms))
