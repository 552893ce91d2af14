"""How often passages are sent, and beside which others, weighing what is long ago less.

Long ago is counted in requests and not in time, so the order of passages depends on nothing but what was sent.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Iterable, Sequence
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)

HALF_LIFE = 2_000
"""Requests in which a count halves."""

_MOST_KEPT = 20_000


class Counts(Generic[Key]):
    """Decayed counts; of too many keys those that were counted longest ago are given up."""

    def __init__(self) -> None:
        self._requests = 0
        self._counts: OrderedDict[Key, tuple[float, int]] = OrderedDict()  # with the request that they hold for

    def of(self, key: Key) -> float:
        """Returns the count of a key as of now."""
        count, request = self._counts.get(key, (0.0, 0))
        return count * math.exp2((request - self._requests) / HALF_LIFE)

    def add(self, keys: Iterable[Key]) -> None:
        """Counts a request with these keys."""
        self._requests += 1
        for key in keys:
            self._counts[key] = (self.of(key) + 1.0, self._requests)
            self._counts.move_to_end(key)
        while len(self._counts) > _MOST_KEPT:
            self._counts.popitem(last=False)


class Popularity:
    """Counts passages, and passages by the one that their prompt began with."""

    def __init__(self) -> None:
        self._alone = Counts[int]()
        self._together = Counts[tuple[int, int]]()

    def of(self, key: int) -> float:
        """Returns how often a passage was sent."""
        return self._alone.of(key)

    def beside(self, first: int, key: int) -> float:
        """Returns how often a passage was sent in prompts that began with another one."""
        return self._together.of((first, key))

    def add(self, keys: Sequence[int]) -> None:
        """Counts a prompt with these passages in this order."""
        self._alone.add(keys)
        self._together.add((keys[0], key) for key in keys[1:])
