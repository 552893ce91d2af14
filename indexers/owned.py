"""Tasks with an owner: started here, awaited here, stopped here."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class OwnedTasks:
    """The tasks of one owner, which must `drain` or `cancel` them before it is gone."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._cancelled = False

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Starts work that goes on whoever waits for it."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    async def to_the_end(self, work: Coroutine[Any, Any, T]) -> T:
        """Waits for work that goes on to its end even when the caller is cancelled."""
        return await asyncio.shield(self.start(work))

    async def while_wanted(self, work: Coroutine[Any, Any, T], stopped: Exception) -> T:
        """Waits for work that ends with its caller; raises `stopped` when the owner has ended it instead."""
        task = self.start(work)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if self._cancelled and task.cancelled():
                raise stopped from None
            task.cancel()
            await asyncio.wait([task])
            raise

    async def drain(self) -> None:
        """Waits until everything has ended; errors belong to whoever waited for them."""
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def cancel(self) -> None:
        """Stops everything."""
        self._cancelled = True
        for task in self._tasks:
            task.cancel()
        await self.drain()

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled():
            task.exception()  # seen, in case that nobody waits any more
