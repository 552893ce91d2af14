"""The one deadline of a request, and how its stages share it.

A share is taken of what is left, not of the whole: time that one stage saves is there for the next.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from retrieval.alarm import Alarm
from retrieval.clock import Stage
from retrieval.errors import DeadlineExceeded

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point in time on the clock of `time.monotonic_ns`, and how much time there was at first."""

    at_ns: int
    budget_ms: float

    @classmethod
    def after(cls, seconds: float, now_ns: Callable[[], int] = time.monotonic_ns) -> Deadline:
        """Returns the deadline that many seconds from now."""
        return cls(now_ns() + int(seconds * 1e9), seconds * 1e3)

    def remaining_s(self) -> float:
        """Returns the seconds that are left; negative once it has passed."""
        return (self.at_ns - time.monotonic_ns()) / 1e9

    def share_ns(self, share: float) -> int:
        """Returns the point in time at which this share of what is left is used up."""
        now = time.monotonic_ns()
        return now + int(max(0, self.at_ns - now) * share)

    def check(self, stage: Stage) -> None:
        """Raises DeadlineExceeded when no time is left for the stage."""
        if time.monotonic_ns() >= self.at_ns:
            raise DeadlineExceeded(stage.value, self.budget_ms)

    @asynccontextmanager
    async def bound(self, stage: Stage) -> AsyncIterator[None]:
        """Bounds what is awaited inside; raises DeadlineExceeded that names the stage."""
        self.check(stage)
        try:
            async with asyncio.timeout(self.remaining_s()):
                yield
        except TimeoutError as error:
            raise DeadlineExceeded(stage.value, self.budget_ms) from error

    @contextmanager
    def iterating(self, stage: Stage, items: AsyncIterator[T]) -> Iterator[AsyncIterator[T]]:
        """Gives the items, each awaited within the deadline; closing `items` stays with the caller."""
        alarm = Alarm()
        try:
            yield _Bounded(self, stage, items, alarm)
        finally:
            alarm.close()


class _Bounded(Generic[T]):
    """An iterator and no generator, so that nothing is left open when the caller stops in the middle."""

    def __init__(self, deadline: Deadline, stage: Stage, items: AsyncIterator[T], alarm: Alarm) -> None:
        self._deadline = deadline
        self._stage = stage
        self._items = items
        self._alarm = alarm

    def __aiter__(self) -> AsyncIterator[T]:
        return self

    async def __anext__(self) -> T:
        deadline = self._deadline
        deadline.check(self._stage)
        try:
            with self._alarm.after(deadline.remaining_s()):
                return await anext(self._items)
        except TimeoutError as error:
            raise DeadlineExceeded(self._stage.value, deadline.budget_ms) from error
