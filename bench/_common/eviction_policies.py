"""What leaves a full cache: the policies that the product's own is measured against, small and clear.

All are bounded by the bytes of what they hold, and none stores values. Sources:
- LRU: least recently used leaves first.
- SIEVE: Zhang, Yang, Yue, Vigfusson and Rashmi, "SIEVE is simpler than LRU", NSDI 2024. One queue and a hand that moves
  from the oldest to the newest, clears the mark of what was used, and takes the first that was not.
- W-TinyLFU: Einziger, Friedman and Manes, "TinyLFU: a highly efficient cache admission policy", ACM Transactions on
  Storage 13(4), 2017: a window of 1 % with LRU before a segmented LRU (20 % probation, 80 % protected), to which an
  entry is admitted if a sketch says that it is asked for more often than what would leave. The sketch is a count-min of
  four rows with counters up to 15 that are halved after ten requests for each entry held, behind a doorkeeper.
- Belady, "A study of replacement algorithms for a virtual-storage computer", IBM Systems Journal, 1966: what is asked
  for again last leaves first. It needs the future; with different sizes it is a strong reference, no proven bound.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol

from retrieval.caching.s3fifo import S3Fifo

_NEVER = 1 << 62


class Policy(Protocol):
    """A cache that is asked for keys, and takes in what it does not hold."""

    def request(self, key: int, size: int) -> bool:
        """Returns whether the key was there; a size is above 0, in bytes, and the same each time."""
        ...


class Lru:
    """Least recently used leaves."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._used = 0
        self._sizes: OrderedDict[int, int] = OrderedDict()

    def request(self, key: int, size: int) -> bool:
        """Returns whether the key was there."""
        if key in self._sizes:
            self._sizes.move_to_end(key)
            return True
        if size <= self._capacity:
            self._sizes[key] = size
            self._used += size
            while self._used > self._capacity:
                self._used -= self._sizes.popitem(last=False)[1]
        return False


class _Node:
    """A place in SIEVE's queue."""

    __slots__ = ("key", "newer", "older", "size", "used")

    def __init__(self, key: int, size: int) -> None:
        self.key, self.size, self.used = key, size, False
        self.newer: _Node | None = None
        self.older: _Node | None = None


class Sieve:
    """One queue in order of arrival, and a hand that spares what was used."""

    def __init__(self, capacity_bytes: int) -> None:
        self._capacity = capacity_bytes
        self._used = 0
        self._nodes: dict[int, _Node] = {}
        self._newest: _Node | None = None
        self._oldest: _Node | None = None
        self._hand: _Node | None = None

    def request(self, key: int, size: int) -> bool:
        """Returns whether the key was there."""
        if (node := self._nodes.get(key)) is not None:
            node.used = True
            return True
        if size <= self._capacity:
            while self._used + size > self._capacity:
                self._evict()
            self._append(_Node(key, size))
        return False

    def _evict(self) -> None:
        node = self._hand or self._oldest
        while node is not None and node.used:
            node.used = False
            node = node.newer or self._oldest
        if node is not None:
            self._hand = node.newer
            self._unlink(node)

    def _append(self, node: _Node) -> None:
        node.older = self._newest
        if self._newest is not None:
            self._newest.newer = node
        self._newest = node
        self._oldest = self._oldest or node
        self._nodes[node.key] = node
        self._used += node.size

    def _unlink(self, node: _Node) -> None:
        if node.older is None:
            self._oldest = node.newer
        else:
            node.older.newer = node.newer
        if node.newer is None:
            self._newest = node.older
        else:
            node.newer.older = node.older
        del self._nodes[node.key]
        self._used -= node.size


class Sketch:
    """How often keys were asked for lately, about: a count-min sketch behind a doorkeeper, halved as it ages."""

    def __init__(self, entries: int) -> None:
        self._mask = (1 << max(4, (4 * entries - 1).bit_length())) - 1
        self._rows = [bytearray(self._mask + 1) for _ in range(4)]
        self._seen = set[int]()  # the doorkeeper; exact here, a Bloom filter in the paper
        self._left = self._sample = max(1, 10 * entries)

    def add(self, key: int) -> None:
        """Counts a request."""
        self._left -= 1
        if self._left == 0:
            self._age()
        if key not in self._seen:
            self._seen.add(key)
            return
        for row, place in zip(self._rows, self._places(key), strict=True):
            row[place] = min(15, row[place] + 1)

    def estimate(self, key: int) -> int:
        """Returns about how often the key was asked for."""
        counted = min(row[place] for row, place in zip(self._rows, self._places(key), strict=True))
        return counted + (key in self._seen)

    def _places(self, key: int) -> list[int]:
        return [hash((salt, key)) & self._mask for salt in (1, 2, 3, 4)]

    def _age(self) -> None:
        self._rows = [bytearray(count >> 1 for count in row) for row in self._rows]
        self._seen.clear()
        self._left = self._sample


class WTinyLfu:
    """A small window before a segmented LRU that admits only what is asked for more often than what would leave."""

    def __init__(self, capacity_bytes: int, entries: int) -> None:
        self._window_capacity = max(1, capacity_bytes // 100)
        self._main_capacity = capacity_bytes - self._window_capacity
        self._protected_capacity = self._main_capacity * 8 // 10
        self._window: OrderedDict[int, int] = OrderedDict()
        self._probation: OrderedDict[int, int] = OrderedDict()
        self._protected: OrderedDict[int, int] = OrderedDict()
        self._window_used = self._probation_used = self._protected_used = 0
        self._sketch = Sketch(entries)

    def request(self, key: int, size: int) -> bool:
        """Returns whether the key was there."""
        self._sketch.add(key)
        if key in self._window:
            self._window.move_to_end(key)
        elif key in self._protected:
            self._protected.move_to_end(key)
        elif key in self._probation:
            self._protect(key)
        else:
            self._take(key, size)
            return False
        return True

    def _protect(self, key: int) -> None:
        size = self._probation.pop(key)
        self._probation_used -= size
        self._protected[key] = size
        self._protected_used += size
        while self._protected_used > self._protected_capacity:
            back, back_size = self._protected.popitem(last=False)
            self._protected_used -= back_size
            self._probation[back] = back_size
            self._probation_used += back_size

    def _take(self, key: int, size: int) -> None:
        self._window[key] = size
        self._window_used += size
        while self._window_used > self._window_capacity:
            leaving, leaving_size = self._window.popitem(last=False)
            self._window_used -= leaving_size
            self._admit(leaving, leaving_size)

    def _admit(self, key: int, size: int) -> None:
        """Takes an entry that leaves the window, if it is asked for more often than all that must go for it."""
        free = self._main_capacity - self._probation_used - self._protected_used
        victims = list[int]()
        for segment in (self._probation, self._protected):
            for victim, victim_size in segment.items():
                if free >= size:
                    break
                victims.append(victim)
                free += victim_size
        asked = self._sketch.estimate(key)
        if free < size or any(self._sketch.estimate(victim) >= asked for victim in victims):
            return
        for victim in victims:
            self._probation_used -= self._probation.pop(victim, 0)
            self._protected_used -= self._protected.pop(victim, 0)
        self._probation[key] = size
        self._probation_used += size


class Ours:
    """The product's own cache, with sizes in the place of values; its bookkeeping counts as it does in the product."""

    def __init__(self, capacity_bytes: int, bookkeeping_bytes: int) -> None:
        self._cache = S3Fifo[int, int]("ours", capacity_bytes, lambda size: size - bookkeeping_bytes)

    def request(self, key: int, size: int) -> bool:
        """Returns whether the key was there."""
        if self._cache.get(key) is not None:
            return True
        self._cache.put(key, size)
        return False


class Belady:
    """Knows the trace: what is asked for again last leaves, and what would itself be that is not taken in."""

    def __init__(self, capacity_bytes: int, keys: Sequence[int]) -> None:
        self._capacity = capacity_bytes
        self._used = 0
        self._next = _next_requests(keys)
        self._now = -1
        self._held: dict[int, tuple[int, int]] = {}  # key -> (next request, size)
        self._latest: list[tuple[int, int]] = []  # (-next request, key), stale ones included

    def request(self, key: int, size: int) -> bool:
        """Returns whether the key was there; requests come in the order of the trace."""
        self._now += 1
        again = self._next[self._now]
        hit = key in self._held
        if not hit:
            self._used += size
        self._held[key] = (again, size)
        heapq.heappush(self._latest, (-again, key))
        while self._used > self._capacity:
            self._evict()
        return hit

    def _evict(self) -> None:
        again, key = heapq.heappop(self._latest)
        if key in self._held and self._held[key][0] == -again:
            self._used -= self._held.pop(key)[1]


def _next_requests(keys: Sequence[int]) -> list[int]:
    """Returns for each request when its key is asked for next."""
    found, later = [_NEVER] * len(keys), dict[int, int]()
    for place in range(len(keys) - 1, -1, -1):
        found[place] = later.get(keys[place], _NEVER)
        later[keys[place]] = place
    return found
