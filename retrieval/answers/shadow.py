"""Answers that are made besides, to compare: a few at a time, owned here, with a deadline of their own."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

_MOST_AT_ONCE = 2


class Shadow:
    """Runs comparisons beside requests; what is too much at once is left out, whatever its outcome would be."""

    def __init__(self, most_at_once: int = _MOST_AT_ONCE) -> None:
        self._most_at_once = most_at_once
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def has_room(self) -> bool:
        """Whether one more may start."""
        return len(self._tasks) < self._most_at_once

    def start(self, comparison: Coroutine[Any, Any, None]) -> None:
        """Starts a comparison; it must end by itself, and raise nothing that its owner should know."""
        task = asyncio.get_running_loop().create_task(comparison)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def settle(self) -> None:
        """Waits for what runs."""
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def close(self) -> None:
        """Gives up what runs."""
        for task in self._tasks:
            task.cancel()
        await self.settle()
