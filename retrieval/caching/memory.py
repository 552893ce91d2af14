"""What a tier in process is: values as they are, bounded in bytes. `S3Fifo` is the one that serves."""

from __future__ import annotations

from typing import Protocol, TypeVar

from retrieval.caching.keys import CacheKey

V = TypeVar("V")


class Memory(Protocol[V]):
    """A cache in this process. Not thread-safe."""

    @property
    def name(self) -> str:
        """What ledgers and metrics call it."""
        ...

    def get(self, key: CacheKey) -> V | None:
        """Returns the value, or None when it is not there."""
        ...

    def put(self, key: CacheKey, value: V) -> None:
        """Stores the value; one that is too large for the cache is not stored."""
        ...

    def invalidate(self, key: CacheKey) -> None:
        """Forgets the value, if it is there."""
        ...
