"""What a tier of caches that several processes share is to the rest: quick, optional, and never believed blindly.

It has a small budget of time of its own. Whatever goes wrong in it is a miss: nothing in it is needed for an answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from retrieval.caching.keys import CacheKey, Purpose


@dataclass(frozen=True, slots=True)
class Stored:
    """A value, and when it was stored, in seconds since the epoch."""

    value: bytes
    stored_at_s: float


@dataclass(frozen=True, slots=True)
class Found:
    """What a look-up brought: one entry a key, None for a miss.

    `available` is False when the tier could not be asked, or did not answer within its budget; all are misses then.
    """

    values: Sequence[Stored | None]
    available: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """Which values to forget: those that agree with all fields that are not None."""

    tenant: str
    collection: str | None = None
    purpose: Purpose | None = None
    older_than_s: float | None = None  # stored longer ago than this


@dataclass(frozen=True, slots=True)
class SharedStats:
    """How a shared tier does."""

    kind: str  # `none`, `redis`
    available: bool
    lookups: int = 0  # keys asked for
    hits: int = 0
    damaged: int = 0  # values that were not what their key promised
    writes: int = 0
    dropped_writes: int = 0  # because too many waited, or the tier was unavailable
    failures: int = 0  # calls that failed or took too long


class SharedTier(Protocol):
    """A cache beside the process."""

    async def get_many(self, keys: Sequence[CacheKey]) -> Found:
        """Reads the values in one round trip, within the tier's own budget. Never raises but for cancellation."""
        ...

    def put(self, key: CacheKey, value: bytes, ttl_s: float) -> None:
        """Takes a value to be written soon; returns at once. May drop it."""
        ...

    async def delete(self, keys: Sequence[CacheKey]) -> bool:
        """Forgets the values, within the tier's budget; False when it could not: they end by their time to live."""
        ...

    async def invalidate(self, selection: Selection) -> int | None:
        """Forgets the selected values and returns how many; None when the tier is unavailable. May take seconds."""
        ...

    def stats(self) -> SharedStats:
        """Returns how the tier does."""
        ...

    async def close(self) -> None:
        """Ends background work and connections; a second call does nothing."""
        ...


class NoSharedTier:
    """The tier of a process that shares nothing: always a miss, always available."""

    async def get_many(self, keys: Sequence[CacheKey]) -> Found:
        """Returns misses."""
        return Found([None] * len(keys), available=True)

    def put(self, key: CacheKey, value: bytes, ttl_s: float) -> None:
        """Stores nothing."""

    async def delete(self, keys: Sequence[CacheKey]) -> bool:
        """Has nothing to forget."""
        return True

    async def invalidate(self, selection: Selection) -> int | None:
        """Has nothing to forget."""
        return 0

    def stats(self) -> SharedStats:
        """Returns that there is none."""
        return SharedStats("none", available=True)

    async def close(self) -> None:
        """Has nothing to end."""
