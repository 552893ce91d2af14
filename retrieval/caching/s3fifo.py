"""A cache by key that one-hit wonders leave early: three first-in-first-out queues, bounded in bytes.

S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for cache eviction", SOSP 2023). A new entry
waits in a small queue, a tenth of the bytes. Used again meanwhile, it moves to the main queue when its turn to leave
comes; otherwise only its key stays behind, in the ghost queue, and one that comes back while its ghost is there goes
straight to the main queue. There, each use buys an entry one more round. A scan of keys that are never asked for again
passes through the small queue and leaves the rest alone, which a least-recently-used order cannot do.

Whoever keeps something beside the values, an index of them, is told of each value that leaves, whatever the reason, so
that the two never drift apart.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from itertools import chain
from typing import Generic, TypeVar

from retrieval.caching.memory import MemoryFigures

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

# By tracemalloc on CPython 3.11: a CacheKey with its digest; an entry, its dict slot and links; those of a ghost.
KEY_BYTES = 130
ENTRY_OVERHEAD_BYTES = 200
GHOST_OVERHEAD_BYTES = 110
_SMALL_SHARE = 0.1
_GHOST_SHARE = 0.1
_MOST_USES = 3  # two bits an entry, as in the paper


class _Entry(Generic[V]):
    """A value, its bytes when it came, and how often it was asked for since it came or since its last round."""

    __slots__ = ("size", "uses", "value")

    def __init__(self, value: V, size: int) -> None:
        self.value = value
        self.size = size  # of key, value and bookkeeping; kept, so that a value that grows cannot upset the sum
        self.uses = 0


class S3Fifo(Generic[K, V]):
    """A cache bounded in bytes, keys and ghosts included; operations are constant time on average. Not thread-safe.

    `size_of` gives the bytes of a value, without its key. `on_evict` is called for each value that has left: evicted,
    replaced (before the new one is there) or invalidated. It must not change the cache.
    """

    def __init__(
        self,
        name: str,
        capacity_bytes: int,
        size_of: Callable[[V], int],
        on_evict: Callable[[K, V], None] | None = None,
    ) -> None:
        self.name = name
        self.hits = self.misses = self.evictions = 0  # since the start; an eviction makes room, all else is not one
        self._size_of = size_of
        self._on_evict = on_evict
        self._small_bytes = self._main_bytes = self._ghost_bytes = 0
        self._ghost_capacity = int(capacity_bytes * _GHOST_SHARE)
        self._capacity = capacity_bytes - self._ghost_capacity
        self._small_capacity = int(self._capacity * _SMALL_SHARE)
        self._small: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._main: OrderedDict[K, _Entry[V]] = OrderedDict()
        self._ghosts: OrderedDict[K, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._small) + len(self._main)

    def __contains__(self, key: object) -> bool:
        return key in self._small or key in self._main

    @property
    def used_bytes(self) -> int:
        """Bytes of keys, values, ghosts and their bookkeeping; never above the capacity."""
        return self._small_bytes + self._main_bytes + self._ghost_bytes

    @property
    def figures(self) -> MemoryFigures:
        """How it fares."""
        capacity = self._capacity + self._ghost_capacity
        counts = (self.hits, self.misses, self.evictions)
        return MemoryFigures(self.name, len(self), self.used_bytes, capacity, *counts)

    @property
    def ghost_count(self) -> int:
        """Keys that are remembered without a value."""
        return len(self._ghosts)

    def get(self, key: K) -> V | None:
        """Returns the value, or None when it is not there; counts as a use."""
        entry = self._small.get(key) or self._main.get(key)
        if entry is None:
            self.misses += 1
            return None
        self.hits += 1
        entry.uses = min(entry.uses + 1, _MOST_USES)
        return entry.value

    def peek(self, key: K) -> V | None:
        """Returns the value, or None when it is not there; counts as nothing."""
        entry = self._small.get(key) or self._main.get(key)
        return None if entry is None else entry.value

    def put(self, key: K, value: V) -> None:
        """Stores the value; one that is too large for the cache is not stored, and an earlier one is gone all the same.

        A value that takes the place of another keeps its uses.
        """
        known = self._forget_ghost(key)
        replaced = self._remove(key)
        size = self._size_of(value) + KEY_BYTES + ENTRY_OVERHEAD_BYTES
        if size > self._capacity:
            return
        while self._small_bytes + self._main_bytes + size > self._capacity:
            self._evict()
        entry = _Entry(value, size)
        if known or replaced is not None:
            entry.uses = 0 if replaced is None else replaced.uses
            self._main[key] = entry
            self._main_bytes += size
        else:
            self._small[key] = entry
            self._small_bytes += size

    def invalidate(self, key: K) -> None:
        """Forgets the value and that it was ever there."""
        self._remove(key)
        self._forget_ghost(key)

    def items(self) -> Iterator[tuple[K, V]]:
        """Yields all keys and values, in no promised order; the cache must not change meanwhile."""
        for key, entry in chain(self._small.items(), self._main.items()):
            yield key, entry.value

    def invalidate_where(self, chosen: Callable[[K, V], bool]) -> int:
        """Forgets all values that are chosen, and returns how many."""
        gone = [key for key, value in self.items() if chosen(key, value)]
        for key in gone:
            self.invalidate(key)
        return len(gone)

    def _evict(self) -> None:
        """Takes one step towards room: an entry leaves, or moves on to where it stays longer."""
        if self._small and (self._small_bytes > self._small_capacity or not self._main):
            self._leave_small()
        else:
            self._leave_main()

    def _leave_small(self) -> None:
        key, entry = self._small.popitem(last=False)
        self._small_bytes -= entry.size
        if entry.uses:
            entry.uses = 0
            self._main[key] = entry
            self._main_bytes += entry.size
        else:
            self._remember_ghost(key)
            self.evictions += 1
            self._tell(key, entry)

    def _leave_main(self) -> None:
        key, entry = self._main.popitem(last=False)
        if entry.uses:
            entry.uses -= 1
            self._main[key] = entry
        else:
            self._main_bytes -= entry.size
            self.evictions += 1
            self._tell(key, entry)

    def _remove(self, key: K) -> _Entry[V] | None:
        """Takes an entry out and returns it; None when it was not there."""
        if (entry := self._small.pop(key, None)) is not None:
            self._small_bytes -= entry.size
        elif (entry := self._main.pop(key, None)) is not None:
            self._main_bytes -= entry.size
        if entry is not None:
            self._tell(key, entry)
        return entry

    def _tell(self, key: K, entry: _Entry[V]) -> None:
        if self._on_evict is not None:
            self._on_evict(key, entry.value)

    def _remember_ghost(self, key: K) -> None:
        self._ghosts[key] = None
        self._ghost_bytes += KEY_BYTES + GHOST_OVERHEAD_BYTES
        while self._ghost_bytes > self._ghost_capacity:
            self._ghosts.popitem(last=False)
            self._ghost_bytes -= KEY_BYTES + GHOST_OVERHEAD_BYTES

    def _forget_ghost(self, key: K) -> bool:
        if key not in self._ghosts:
            return False
        del self._ghosts[key]
        self._ghost_bytes -= KEY_BYTES + GHOST_OVERHEAD_BYTES
        return True
