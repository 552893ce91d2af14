"""Identical concurrent work runs once, for a value.

The work runs in a task of its own; every caller, the first one too, waits beside it. Whoever is cancelled or runs out
of time leaves alone, and the last one to leave cancels the work without waiting for its end. Work that asks its own
flight for its own key would wait for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from retrieval.caching.flights import Fault, Flights, fault_of
from retrieval.caching.keys import CacheKey

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Joined(Generic[V]):
    """A value, and whether this caller's work made it."""

    value: V
    led: bool


class SingleFlight(Generic[V]):
    """Runs of one kind of work, one at a time for each key. For one event loop."""

    def __init__(self) -> None:
        self._flights: Flights[_Flight[V]] = Flights()

    def __len__(self) -> int:
        return len(self._flights)

    async def run(
        self,
        key: CacheKey,
        work: Callable[[], Coroutine[Any, Any, V]],
        accept: Callable[[V], bool] | None = None,
        again: Callable[[BaseException], bool] | None = None,
    ) -> Joined[V]:
        """Returns what the work under this key gives: joins the run under way or starts one.

        A caller that joined may refuse a value (`accept` is false) or an error (`again` is true) that fits the leader
        alone, such as its deadline; it goes again, and the first to do so leads. That ends, since each round's leader
        takes what it gets. Raises what the work raises, `FlightCancelled` when the work was cancelled by other than its
        callers, and ShuttingDown after `close`.
        """
        while True:
            flight = self._flights.get(key)
            led = flight is None
            if flight is None:
                flight = _Flight()
                flight.task = self._flights.launch(key, flight, work())
            await self._arrival(key, flight)
            if led or flight.suits(accept, again):
                return Joined(flight.take(), led)

    async def join(
        self,
        key: CacheKey,
        accept: Callable[[V], bool] | None = None,
        again: Callable[[BaseException], bool] | None = None,
    ) -> Joined[V] | None:
        """Returns what the run under way gives, as `run` does; None when there is none, or the caller refuses it."""
        while (flight := self._flights.get(key)) is not None:
            await self._arrival(key, flight)
            if flight.suits(accept, again):
                return Joined(flight.take(), led=False)
        return None

    async def close(self) -> None:
        """Cancels the runs under way, whose callers get `FlightCancelled`, and returns when all have ended."""
        await self._flights.close()

    async def _arrival(self, key: CacheKey, flight: _Flight[V]) -> None:
        arrival = asyncio.get_running_loop().create_future()
        flight.waiting[arrival] = None
        try:
            await arrival
        finally:
            del flight.waiting[arrival]
            if not flight.waiting:
                self._flights.forget(key, flight)
                flight.task.cancel()  # does nothing to a task that is done


class _Flight(Generic[V]):
    """One run and who waits for it."""

    __slots__ = ("fault", "task", "waiting")

    def __init__(self) -> None:
        self.task: asyncio.Task[V]
        self.waiting: dict[asyncio.Future[None], None] = {}  # in the order of arrival
        self.fault: Fault | None = None

    def land(self, task: asyncio.Task[Any]) -> None:
        """Keeps how the run ended, and wakes all."""
        self.fault = fault_of(task)
        for arrival in self.waiting:
            if not arrival.done():
                arrival.set_result(None)

    def suits(self, accept: Callable[[V], bool] | None, again: Callable[[BaseException], bool] | None) -> bool:
        """Tells whether a caller that joined takes how the run ended."""
        if self.fault is not None:
            return again is None or not again(self.fault.error)
        return accept is None or accept(self.task.result())

    def take(self) -> V:
        """Returns the value, or raises the error."""
        if self.fault is not None:
            self.fault.throw()
        return self.task.result()
