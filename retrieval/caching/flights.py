"""Work that several callers share: the tasks that carry it, by key, and how its end is told to each of them.

The tasks belong to `Flights` and to no caller, so a caller's cancel is never the work's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Any, Generic, NoReturn, Protocol, TypeVar

from retrieval.caching.keys import CacheKey
from retrieval.errors import FlightCancelled, ShuttingDown

V = TypeVar("V")


@dataclass(frozen=True, slots=True)
class Fault:
    """The error that ended shared work."""

    error: BaseException
    traceback: TracebackType | None  # as it was when the work ended

    def throw(self) -> NoReturn:
        """Raises the error itself, so that its class and attributes hold.

        Each raise begins at the work's own traceback: else 200 callers would add their frames to one another's.
        """
        raise self.error.with_traceback(self.traceback)


def fault_of(task: asyncio.Task[Any]) -> Fault | None:
    """Returns what ended a task that is done, None when it succeeded; a cancelled one's is `FlightCancelled`."""
    if task.cancelled():
        return Fault(FlightCancelled(), None)
    error = task.exception()
    return None if error is None else Fault(error, error.__traceback__)


class Flight(Protocol):
    """Shared work that is under way."""

    def land(self, task: asyncio.Task[Any]) -> None:
        """Learns that its task is done."""
        ...


F = TypeVar("F", bound=Flight)


class Flights(Generic[F]):
    """What is under way and can be joined, by key; the owner of all its tasks until they are done."""

    def __init__(self) -> None:
        self._joinable: dict[CacheKey, F] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._closed = False

    def __len__(self) -> int:
        return len(self._joinable)

    def get(self, key: CacheKey) -> F | None:
        """Returns what can be joined; raises ShuttingDown after `close`."""
        if self._closed:
            raise ShuttingDown
        return self._joinable.get(key)

    def launch(self, key: CacheKey, flight: F, work: Coroutine[Any, Any, V]) -> asyncio.Task[V]:
        """Starts the work in a task of its own, to be joined under the key."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        self._joinable[key] = flight
        task.add_done_callback(partial(self._landed, key, flight))
        return task

    def forget(self, key: CacheKey, flight: F) -> None:
        """Lets nobody join the flight any more; the key is free at once."""
        if self._joinable.get(key) is flight:
            del self._joinable[key]

    async def close(self) -> None:
        """Cancels what is under way and returns when all of it has ended; a second call waits for the same."""
        self._closed = True
        for task in self._tasks:
            # A second cancel would break into the cleaning up after the first.
            if not task.cancelling():
                task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

    def _landed(self, key: CacheKey, flight: F, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        self.forget(key, flight)
        flight.land(task)
