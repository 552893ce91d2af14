"""Identical concurrent streams run once: who comes late gets what was sent, then live items.

One task pumps the source into a chain of items, and each follower walks the chain at its own pace: nothing is copied,
and what everybody has passed is freed. While the whole chain is within the bounds its start is kept and others may
join. Past them nobody joins, and the bounds hold for what the last follower has not read yet: the pump rests while all
are busy reading, and once somebody waits for more, whoever is farther behind than the bounds falls out.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from retrieval.caching.flights import Fault, Flights, fault_of
from retrieval.caching.keys import CacheKey

T = TypeVar("T")


class FollowerBehind(Exception):
    """A follower read so much slower than others that what it has to read next is not kept any more."""

    def __init__(self, max_items: int, max_bytes: int) -> None:
        super().__init__(f"reading fell more than {max_items} items or {max_bytes} bytes behind; read faster or ask alone")
        self.max_items = max_items
        self.max_bytes = max_bytes


class StreamFlight(Generic[T]):
    """Streams of one kind, one at a time for each key. For one event loop."""

    def __init__(self, max_items: int, max_bytes: int, size_of: Callable[[T], int]) -> None:
        """The bounds are for each stream; `size_of` gives an item's bytes."""
        self._bounds = _Bounds(max_items, max_bytes)
        self._size_of = size_of
        self._flights: Flights[_Flow[T]] = Flights()

    def __len__(self) -> int:
        return len(self._flights)

    def follow(self, key: CacheKey, start: Callable[[], AsyncGenerator[T, None]]) -> Stream[T]:
        """Joins the stream under way, or starts one; what is returned must be closed. Raises ShuttingDown after `close`."""
        flow = self._flights.get(key)
        led = flow is None
        if flow is None:
            flow = _Flow(key, self._flights, self._bounds)
        stream = Stream(flow, led)
        if led:
            flow.task = self._flights.launch(key, flow, self._pump(flow, start))
        return stream

    async def close(self) -> None:
        """Cancels the streams under way, whose followers get `FlightCancelled`, and returns when all have ended."""
        await self._flights.close()

    async def _pump(self, flow: _Flow[T], start: Callable[[], AsyncGenerator[T, None]]) -> None:
        async with aclosing(start()) as source:
            async for item in source:
                flow.append(item, self._size_of(item))
                await flow.room()
                # A source may turn the cancel that meant it into one more item.
                if not flow.readers:
                    return


class Stream(Generic[T]):
    """The items for one follower: those sent before it came, then live ones, then the source's end or error.

    A cancel while it waits closes it. Closing waits for nothing; the last one to close ends the source.
    """

    def __init__(self, flow: _Flow[T], led: bool) -> None:
        self.led = led  # whether this follower started the source
        self._flow = flow
        self._reader = _Reader(flow.first)
        flow.readers.add(self._reader)

    def __aiter__(self) -> Stream[T]:
        return self

    async def __anext__(self) -> T:
        """Returns the next item; raises what the source raised after its last one, and `FollowerBehind` when too slow."""
        reader = self._reader
        while reader.place is not None:
            item = reader.place.following
            if item is not None:
                reader.place = item
                return item.value
            if self._flow.landed:
                self._flow.leave(reader)
                self._flow.finish()
            else:
                await self._more()
        if reader.behind:
            reader.behind = False
            raise FollowerBehind(self._flow.bounds.max_items, self._flow.bounds.max_bytes)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Leaves the stream; a wait for an item that is under way in another task ends as at the stream's end."""
        self._reader.behind = False
        self._flow.leave(self._reader)

    async def _more(self) -> None:
        self._reader.arrival = asyncio.get_running_loop().create_future()
        self._flow.stir()
        try:
            await self._reader.arrival
        except asyncio.CancelledError:
            self._flow.leave(self._reader)
            raise


@dataclass(frozen=True, slots=True)
class _Bounds:
    max_items: int
    max_bytes: int


@dataclass(slots=True, eq=False)
class _Place(Generic[T]):
    """A place in the chain, and how much stands before it in the stream, itself included."""

    item_count: int = 0
    size_bytes: int = 0
    following: _Item[T] | None = None


@dataclass(slots=True, eq=False, kw_only=True)
class _Item(_Place[T]):
    value: T


@dataclass(slots=True, eq=False)
class _Reader(Generic[T]):
    """How far a follower is."""

    place: _Place[T] | None  # of the item read last; None once it has left
    arrival: asyncio.Future[None] | None = None
    behind: bool = False  # it fell out

    @property
    def waits(self) -> bool:
        """Whether it has read all there is."""
        return self.arrival is not None and not self.arrival.done()

    def wake(self) -> None:
        """Lets it look again."""
        if self.arrival is not None and not self.arrival.done():
            self.arrival.set_result(None)


class _Flow(Generic[T]):
    """One stream: its chain and its readers."""

    def __init__(self, key: CacheKey, flights: Flights[_Flow[T]], bounds: _Bounds) -> None:
        self.task: asyncio.Task[None]
        self.bounds = bounds
        self.readers: set[_Reader[T]] = set()
        self.first: _Place[T] | None = _Place()  # None once nobody may join, so that what is read is freed
        self.landed = False
        self._last: _Place[T] | None = self.first
        self._fault: Fault | None = None
        self._rest: asyncio.Future[None] | None = None
        self._key = key
        self._flights = flights
