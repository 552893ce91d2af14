"""The items of one stream, shared by all who read it.

Each reader walks the chain at its own pace; nothing is copied. While the whole stream is within the bounds all of it is
kept, and others may join. Past them nobody may, what all readers have passed is freed, and the bounds hold for what the
slowest has still to read: the writer rests while every reader is busy, and once one of them waits for more, those that
are farther behind than the bounds fall out.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from retrieval.caching.flights import Fault, fault_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much of a stream is kept."""

    max_items: int
    max_bytes: int


@dataclass(slots=True, eq=False)
class Place(Generic[T]):
    """A place in a chain."""

    item_count: int = 0  # of the stream up to here
    size_bytes: int = 0  # of the stream up to here
    following: Item[T] | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class Item(Place[T]):
    """A place with an item in it."""

    value: T


@dataclass(slots=True, eq=False)
class Reader(Generic[T]):
    """How far somebody has read."""

    place: Place[T] | None  # of the item read last; None once it has left
    fell_out: bool = False
    arrival: asyncio.Future[None] | None = None

    @property
    def waits(self) -> bool:
        """Whether it has read everything and asked for more."""
        return self.arrival is not None and not self.arrival.done()

    def wake(self) -> None:
        """Lets it look again."""
        if self.arrival is not None and not self.arrival.done():
            self.arrival.set_result(None)


class Chain(Generic[T]):
    """The items, their readers, and how the stream ended."""

    def __init__(self, bounds: Bounds) -> None:
        self.bounds = bounds
        self.readers: set[Reader[T]] = set()
        self.ended = False
        self.fault: Fault | None = None  # why it ended too early
        self.writer: asyncio.Task[None]
        self._last: Place[T] = Place()
        self._first: Place[T] | None = self._last  # None once nobody may join
        self._rest: asyncio.Future[None] | None = None  # what the writer waits for

    @property
    def joinable(self) -> bool:
        """Whether all of it is kept, for who comes late."""
        return self._first is not None

    def join(self) -> Reader[T]:
        """Returns a reader at the start of a joinable chain."""
        reader = Reader(self._first)
        self.readers.add(reader)
        return reader

    def leave(self, reader: Reader[T]) -> None:
        """Ends a reader; when it waits, it wakes. Once it has left, this does nothing."""
        self.readers.discard(reader)
        reader.place = None
        reader.wake()
        self._resume()

    def append(self, value: T, size_bytes: int) -> None:
        """Adds an item and wakes who waits for it."""
        last = self._last
        item = Item(item_count=last.item_count + 1, size_bytes=last.size_bytes + size_bytes, value=value)
        last.following = self._last = item
        if self._exceeds(0, 0):
            self._first = None
        for reader in self.readers:
            reader.wake()

    def land(self, task: asyncio.Task[Any]) -> None:
        """Ends the stream as the task did that wrote it."""
        self.fault = fault_of(task)
        self.ended = True
        for reader in self.readers:
            reader.wake()

    async def more(self, reader: Reader[T]) -> None:
        """Waits until the reader, which has read everything, has a reason to look again."""
        reader.arrival = asyncio.get_running_loop().create_future()
        self._resume()
        try:
            await reader.arrival
        finally:
            reader.arrival = None

    async def room(self) -> None:
        """Gives way to the readers, and waits while all that is kept is wanted by readers who are busy."""
        # Always once: a source that never waits would else keep its items from them until the bounds are reached.
        await asyncio.sleep(0)
        while (behind := self._behind()) and not any(reader.waits for reader in self.readers):
            self._rest = asyncio.get_running_loop().create_future()
            await self._rest
        for reader in behind:
            reader.fell_out = True
            self.leave(reader)

    def _behind(self) -> list[Reader[T]]:
        if self.joinable:
            return []
        return [
            reader
            for reader in self.readers
            if reader.place is not None and self._exceeds(reader.place.item_count, reader.place.size_bytes)
        ]

    def _exceeds(self, item_count: int, size_bytes: int) -> bool:
        """Tells whether more than the bounds stands after that much of the stream."""
        return (
            self._last.item_count - item_count > self.bounds.max_items
            or self._last.size_bytes - size_bytes > self.bounds.max_bytes
        )

    def _resume(self) -> None:
        if self._rest is not None and not self._rest.done():
            self._rest.set_result(None)
