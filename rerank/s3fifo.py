"""A cache of bytes by key that one-hit wonders leave early: three first-in-first-out queues, bounded in bytes.

S3-FIFO (Yang, Zhang, Qiu, Yue and Rashmi, "FIFO queues are all you need for cache eviction", SOSP 2023). A new entry
waits in a small queue, a tenth of the bytes. Used again meanwhile, it moves to the main queue when its turn to leave
comes; otherwise only its key stays behind, in the ghost queue, and one that comes back while its ghost is there goes
straight to the main queue. There, each use buys an entry one more round. A scan of keys that are never asked for again
passes through the small queue and leaves the rest alone, which a least-recently-used order cannot do.
"""

from __future__ import annotations

from collections import OrderedDict

ENTRY_OVERHEAD_BYTES = 250  # key object, entry, dict slot and links, by tracemalloc on CPython 3.11
GHOST_OVERHEAD_BYTES = 150
_SMALL_SHARE = 0.1
_GHOST_SHARE = 0.1
_MOST_USES = 3  # two bits an entry, as in the paper


class _Entry:
    """A value, and how often it was asked for since it came or since its last round."""

    __slots__ = ("uses", "value")

    def __init__(self, value: bytes) -> None:
        self.value = value
        self.uses = 0


class S3Fifo:
    """A cache bounded in bytes, keys and ghosts included; operations are constant time on average. Not thread-safe."""

    def __init__(self, name: str, capacity_bytes: int) -> None:
        self.name = name
        self._small_bytes = self._main_bytes = self._ghost_bytes = 0
        self._ghost_capacity = int(capacity_bytes * _GHOST_SHARE)
        self._capacity = capacity_bytes - self._ghost_capacity
        self._small_capacity = int(self._capacity * _SMALL_SHARE)
        self._small: OrderedDict[bytes, _Entry] = OrderedDict()
        self._main: OrderedDict[bytes, _Entry] = OrderedDict()
        self._ghosts: OrderedDict[bytes, None] = OrderedDict()

    def __len__(self) -> int:
        return len(self._small) + len(self._main)

    @property
    def used_bytes(self) -> int:
        """Bytes of keys, values, ghosts and their bookkeeping; never above the capacity."""
        return self._small_bytes + self._main_bytes + self._ghost_bytes

    @property
    def ghost_count(self) -> int:
        """Keys that are remembered without a value."""
        return len(self._ghosts)

    def get(self, key: bytes) -> bytes | None:
        """Returns the value, or None when it is not there."""
        entry = self._small.get(key) or self._main.get(key)
        if entry is None:
            return None
        entry.uses = min(entry.uses + 1, _MOST_USES)
        return entry.value

    def put(self, key: bytes, value: bytes) -> None:
        """Stores the value; one that is too large for the cache is not stored."""
        known = self._forget_ghost(key)
        uses = self._remove(key)
        size = _size(key, value)
        if size > self._capacity:
            return
        while self._small_bytes + self._main_bytes + size > self._capacity:
            self._evict()
        entry = _Entry(value)
        if known or uses is not None:
            entry.uses = uses or 0
            self._main[key] = entry
            self._main_bytes += size
        else:
            self._small[key] = entry
            self._small_bytes += size

    def invalidate(self, key: bytes) -> None:
        """Forgets the value and that it was ever there."""
        self._remove(key)
        self._forget_ghost(key)

    def _evict(self) -> None:
        """Takes one step towards room: an entry leaves, or moves on to where it stays longer."""
        if self._small and (self._small_bytes > self._small_capacity or not self._main):
            self._leave_small()
        else:
            self._leave_main()

    def _leave_small(self) -> None:
        key, entry = self._small.popitem(last=False)
        size = _size(key, entry.value)
        self._small_bytes -= size
        if entry.uses:
            entry.uses = 0
            self._main[key] = entry
            self._main_bytes += size
        else:
            self._remember_ghost(key)

    def _leave_main(self) -> None:
        key, entry = self._main.popitem(last=False)
        if entry.uses:
            entry.uses -= 1
            self._main[key] = entry
        else:
            self._main_bytes -= _size(key, entry.value)

    def _remove(self, key: bytes) -> int | None:
        """Takes an entry out; returns how often it was used, None when it was not there."""
        if (entry := self._small.pop(key, None)) is not None:
            self._small_bytes -= _size(key, entry.value)
        elif (entry := self._main.pop(key, None)) is not None:
            self._main_bytes -= _size(key, entry.value)
        return None if entry is None else entry.uses

    def _remember_ghost(self, key: bytes) -> None:
        self._ghosts[key] = None
        self._ghost_bytes += _ghost_size(key)
        while self._ghost_bytes > self._ghost_capacity:
            gone, _ = self._ghosts.popitem(last=False)
            self._ghost_bytes -= _ghost_size(gone)

    def _forget_ghost(self, key: bytes) -> bool:
        if key not in self._ghosts:
            return False
        del self._ghosts[key]
        self._ghost_bytes -= _ghost_size(key)
        return True


def _size(key: bytes, value: bytes) -> int:
    return len(key) + len(value) + ENTRY_OVERHEAD_BYTES


def _ghost_size(key: bytes) -> int:
    return len(key) + GHOST_OVERHEAD_BYTES
