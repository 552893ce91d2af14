"""What a tier in process is: values as they are, bounded in bytes. `S3Fifo` is the one that serves."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from retrieval.caching.keys import CacheKey

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class MemoryFigures:
    """How a cache in this process fares; look-ups are counted from the start."""

    cache: str
    entries: int
    used_bytes: int
    capacity_bytes: int
    hits: int
    misses: int
    evictions: int


class Memory(Protocol[V]):
    """A cache in this process. Not thread-safe."""

    @property
    def name(self) -> str:
        """What ledgers and metrics call it."""
        ...

    @property
    def figures(self) -> MemoryFigures:
        """How it fares."""
        ...

    def get(self, key: CacheKey) -> V | None:
        """Returns the value, or None when it is not there."""
        ...

    def peek(self, key: CacheKey) -> V | None:
        """Returns the value, or None when it is not there; counts as nothing."""
        ...

    def put(self, key: CacheKey, value: V) -> None:
        """Stores the value; one that is too large for the cache is not stored."""
        ...

    def invalidate(self, key: CacheKey) -> None:
        """Forgets the value, if it is there."""
        ...

    def invalidate_where(self, chosen: Callable[[CacheKey, V], bool]) -> int:
        """Forgets all values that are chosen, and returns how many."""
        ...
