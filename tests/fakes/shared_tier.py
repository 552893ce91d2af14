"""A shared tier in this process: what several caches of a test share, as bytes, and which can be unavailable."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from retrieval.caching.keys import CacheKey
from retrieval.caching.redis.naming import takes
from retrieval.caching.shared import Found, Selection, SharedStats, Stored


class MemoryTier:
    """Keeps values until they are deleted."""

    def __init__(self, now_s: Callable[[], float] = time.time) -> None:
        self.available = True
        self.values: dict[CacheKey, Stored] = {}
        self._now_s = now_s

    async def get_many(self, keys: Sequence[CacheKey]) -> Found:
        """Reads the values."""
        return Found([self.values.get(key) if self.available else None for key in keys], self.available)

    def put(self, key: CacheKey, value: bytes, ttl_s: float) -> None:
        """Stores the value at once."""
        if self.available:
            self.values[key] = Stored(value, self._now_s())

    async def delete(self, keys: Sequence[CacheKey]) -> bool:
        """Forgets the values."""
        for key in keys if self.available else ():
            self.values.pop(key, None)
        return self.available

    async def invalidate(self, selection: Selection) -> int | None:
        """Forgets the selected values."""
        if not self.available:
            return None
        before_s = None if selection.older_than_s is None else self._now_s() - selection.older_than_s
        gone = [
            key
            for key, stored in self.values.items()
            if takes(selection, key) and (before_s is None or stored.stored_at_s < before_s)
        ]
        for key in gone:
            del self.values[key]
        return len(gone)

    def stats(self) -> SharedStats:
        """Returns how the tier does."""
        return SharedStats("memory", self.available, lookups=7, hits=len(self.values), failures=2)

    async def close(self) -> None:
        """Has nothing to end."""
