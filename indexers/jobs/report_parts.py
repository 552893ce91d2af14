"""Collects what a report lists, bounded: lengths in classes, the course of a run in few points, the slowest items."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterable, Mapping

from indexers.jobs.report import POINTS, SLOWEST, SlowItem, SpeedPoint

CLASS_TOKENS = 16
"""Width of a class of chunk lengths."""


class ChunkLengths:
    """Counts chunks by length, in classes of sixteen tokens."""

    def __init__(self) -> None:
        self._counts: Counter[int] = Counter()

    def add(self, lengths: Iterable[int]) -> None:
        """Counts chunks of these numbers of tokens."""
        self._counts.update(-(-max(1, length) // CLASS_TOKENS) * CLASS_TOKENS for length in lengths)

    @property
    def counts(self) -> Mapping[int, int]:
        """The longest length of each class that has chunks, and their number; shortest first."""
        return dict(sorted(self._counts.items()))


class Course:
    """Keeps how a run went on: points at even distances in time, however long it takes."""

    def __init__(self, step_s: float = 0.5) -> None:
        self._step_s = step_s
        self._points: list[SpeedPoint] = []

    def add(self, point: SpeedPoint) -> None:
        """Takes a point; one that comes too soon after the last is dropped."""
        if self._points and point.seconds - self._points[-1].seconds < self._step_s:
            return
        self._points.append(point)
        if len(self._points) >= POINTS:
            self._points = self._points[::2]
            self._step_s *= 2

    def points(self, last: SpeedPoint) -> tuple[SpeedPoint, ...]:
        """Returns the course with its end."""
        return (*(point for point in self._points if point.seconds < last.seconds), last)


class Slowest:
    """Keeps the items that took longest."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, str, int]] = []

    def add(self, item: SlowItem) -> None:
        """Takes an item."""
        heapq.heappush(self._heap, (item.seconds, item.name, item.documents))
        if len(self._heap) > SLOWEST:
            heapq.heappop(self._heap)

    @property
    def items(self) -> tuple[SlowItem, ...]:
        """The slowest, slowest first."""
        return tuple(SlowItem(name, seconds, documents) for seconds, name, documents in sorted(self._heap)[::-1])
