"""So many places, and a bounded, fair queue of those who wait for one.

A place goes from hand to hand, so a request that waits is never overtaken by a new one of the same standing, and one
that leaves at the moment at which its place comes passes it on. What the bounds are and who is refused in advance is up
to the owner: `retrieval.admission` bounds whole requests, `retrieval.dispatch.lane` the requests to one server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from retrieval.dispatch.fair_waiting import FairWaiting, Waiter
from retrieval.route import Priority


class NoPlace(Exception):
    """The queue was full, somebody with a better claim came, or no place came in time."""


class Places:
    """Counts the places that are taken, and gives those that become free. For one event loop."""

    def __init__(self, limit: int, max_queued: int, weight: Callable[[str], float]) -> None:
        self._limit = limit
        self._max_queued = max_queued
        self._running = 0
        self._queue: FairWaiting[asyncio.Future[bool]] = FairWaiting(weight)

    @property
    def limit(self) -> int:
        """How many places there are."""
        return self._limit

    @property
    def running(self) -> int:
        """Places that are taken; more than `limit` for a while after it was lowered."""
        return self._running

    @property
    def waiting(self) -> int:
        """Requests that wait for one."""
        return len(self._queue)

    @property
    def free(self) -> bool:
        """Whether a new request gets a place at once."""
        return self._running < self._limit and not len(self._queue)

    def ahead_of(self, tenant: str, priority: Priority) -> int:
        """Returns how many of those who wait would get a place before a new request."""
        return self._queue.ahead_of(tenant, priority)

    def set_bounds(self, limit: int, max_queued: int) -> None:
        """Takes new bounds; requests that have a place or wait are not touched by smaller ones."""
        self._limit = limit
        self._max_queued = max_queued
        self._fill()

    async def acquire(self, tenant: str, priority: Priority, patience_s: float) -> None:
        """Takes a place, which `release` gives back.

        Raises:
            NoPlace: there is none within that time, or no room to wait for it.
        """
        if self.free:
            self._running += 1
            return
        waiter = Waiter(tenant, priority, asyncio.get_running_loop().create_future())
        self._enter(waiter)
        try:
            async with asyncio.timeout(max(0.0, patience_s)):
                got = await waiter.turn
        except TimeoutError as error:
            self._withdraw(waiter)
            raise NoPlace from error
        except asyncio.CancelledError:
            self._withdraw(waiter)
            raise
        if not got:
            raise NoPlace

    def release(self) -> None:
        """Gives a place to whose turn it is, or back."""
        self._running -= 1
        self._fill()

    def _enter(self, waiter: Waiter[asyncio.Future[bool]]) -> None:
        if len(self._queue) >= self._max_queued:
            displaced = self._queue.make_room(waiter.tenant, waiter.priority, self._max_queued)
            if displaced is None:
                raise NoPlace
            if not displaced.turn.done():
                displaced.turn.set_result(False)
        self._queue.put(waiter)

    def _withdraw(self, waiter: Waiter[asyncio.Future[bool]]) -> None:
        waited = self._queue.remove(waiter)
        if not waited and not waiter.turn.cancelled() and waiter.turn.result():
            self.release()  # the place came at the same moment

    def _fill(self) -> None:
        while self._running < self._limit and (waiter := self._queue.take()):
            if not waiter.turn.done():
                self._running += 1
                waiter.turn.set_result(True)
