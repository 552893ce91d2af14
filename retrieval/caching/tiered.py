"""One cache in two tiers: values as they are in this process, bytes in the tier that processes share.

Reading the shared tier is left to whoever looks several things up, so that one round trip brings them all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from retrieval.caching.keys import CacheKey
from retrieval.caching.memory import Memory, MemoryFigures
from retrieval.caching.shared import SharedTier, Stored

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Sharing(Generic[V]):
    """How values go to the shared tier and come back; `decode` gives None for what is damaged."""

    tier: SharedTier
    encode: Callable[[V], bytes]
    decode: Callable[[bytes], V | None]
    ttl_s: Callable[[], float]


class Tiered(Generic[V]):
    """A cache; without `sharing` it is in this process alone."""

    def __init__(self, memory: Memory[V], sharing: Sharing[V] | None = None) -> None:
        self._memory = memory
        self._sharing = sharing

    @property
    def name(self) -> str:
        """What ledgers call it."""
        return self._memory.name

    @property
    def shared(self) -> bool:
        """Whether a value that is not in this process may be in the shared tier."""
        return self._sharing is not None

    @property
    def figures(self) -> MemoryFigures:
        """How it fares in this process."""
        return self._memory.figures

    def get(self, key: CacheKey) -> V | None:
        """Returns the value when it is in this process."""
        return self._memory.get(key)

    def peek(self, key: CacheKey) -> V | None:
        """Returns the value when it is in this process, without counting that as a look-up."""
        return self._memory.peek(key)

    def put(self, key: CacheKey, value: V) -> None:
        """Stores the value in both tiers."""
        self._memory.put(key, value)
        if self._sharing is not None:
            self._sharing.tier.put(key, self._sharing.encode(value), self._sharing.ttl_s())

    def take(self, key: CacheKey, stored: Stored | None) -> V | None:
        """Keeps in this process what the shared tier gave, and returns it; None for a miss or a damaged value."""
        if stored is None or self._sharing is None:
            return None
        value = self._sharing.decode(stored.value)
        if value is not None:
            self._memory.put(key, value)
        return value

    def forget_where(self, chosen: Callable[[CacheKey, V], bool]) -> int:
        """Forgets all values in this process that are chosen, and returns how many."""
        return self._memory.invalidate_where(chosen)
