"""Identical concurrent streams run once: who comes late gets what was sent, then live items.

The source is read by a task of its own, so no follower's cancel is the source's; only when the last follower has left
is the source closed. What is kept, and for whom, is in `chain`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from functools import partial
from typing import Generic, TypeVar

from retrieval.caching.chain import Bounds, Chain
from retrieval.caching.flights import Flights
from retrieval.caching.keys import CacheKey
from retrieval.errors import FollowerBehind

T = TypeVar("T")


class StreamFlight(Generic[T]):
    """Streams of one kind, one at a time for each key. For one event loop."""

    def __init__(self, bounds: Bounds, size_of: Callable[[T], int]) -> None:
        """The bounds are for each stream; `size_of` gives an item's bytes."""
        self._bounds = bounds
        self._size_of = size_of
        self._flights: Flights[Chain[T]] = Flights()

    def __len__(self) -> int:
        return len(self._flights)

    def follow(self, key: CacheKey, start: Callable[[], AsyncGenerator[T, None]]) -> Stream[T]:
        """Joins the stream under way, or starts one; the caller closes what is returned.

        Raises ShuttingDown after `close`.
        """
        chain = self._flights.get(key)
        led = chain is None
        if chain is None:
            chain = Chain(self._bounds)
        stream = Stream(chain, partial(self._abandon, key, chain), led)
        if led:
            chain.writer = self._flights.launch(key, chain, self._pump(key, chain, start))
        return stream

    async def close(self) -> None:
        """Cancels the streams under way, whose followers get `FlightCancelled`, and returns when all have ended."""
        await self._flights.close()

    async def _pump(self, key: CacheKey, chain: Chain[T], start: Callable[[], AsyncGenerator[T, None]]) -> None:
        async with aclosing(start()) as source:
            async for item in source:
                chain.append(item, self._size_of(item))
                if not chain.joinable:
                    self._flights.forget(key, chain)
                await chain.room()
                # A source may turn the cancel that is meant for it into one more item.
                if not chain.readers:
                    return

    def _abandon(self, key: CacheKey, chain: Chain[T]) -> None:
        self._flights.forget(key, chain)
        chain.writer.cancel()  # does nothing to a task that is done


class Stream(Generic[T]):
    """The items for one follower: those sent before it came, then live ones, then the source's end or error.

    A cancel while it waits closes it. Closing waits for nothing; the last one to close ends the source.
    """

    def __init__(self, chain: Chain[T], abandon: Callable[[], None], led: bool) -> None:
        """`led` says that this follower started the source; `abandon` is called when no follower is left."""
        self.led = led
        self._chain = chain
        self._abandon = abandon
        self._reader = chain.join()
        self._loop = asyncio.get_running_loop()

    def __del__(self) -> None:
        # Who was cancelled before it could close must not keep the source going. Collection may run in any thread.
        if self._reader.place is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._leave)

    def __aiter__(self) -> Stream[T]:
        return self

    async def __anext__(self) -> T:
        """Returns the next item; after the last one, raises what the source raised.

        Raises `FollowerBehind` when this follower was too slow, and `FlightCancelled` when the source was cancelled by
        other than its followers. Nothing comes after an error.
        """
        reader = self._reader
        while reader.place is not None:
            item = reader.place.following
            if item is not None:
                reader.place = item
                return item.value
            if self._chain.ended:
                self._leave()
                if self._chain.fault is not None:
                    self._chain.fault.throw()
            else:
                await self._more()
        if reader.fell_out:
            reader.fell_out = False
            raise FollowerBehind(self._chain.bounds.max_items, self._chain.bounds.max_bytes)
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Leaves the stream; a wait for its next item in another task ends as at the stream's end."""
        self._reader.fell_out = False
        self._leave()

    async def _more(self) -> None:
        try:
            await self._chain.more(self._reader)
        except (asyncio.CancelledError, GeneratorExit):
            self._leave()
            raise

    def _leave(self) -> None:
        if self._reader.place is not None:
            self._chain.leave(self._reader)
            if not self._chain.readers:
                self._abandon()
