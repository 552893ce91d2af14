"""Knows which calls run, so that a stop can let them end: nothing new is taken, health is still answered."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from retrieval.errors import ShuttingDown


class Drain:
    """Counts the calls of one server."""

    def __init__(self) -> None:
        self._running = 0
        self._draining = False
        self._over = False
        self._tasks: set[asyncio.Task[object]] = set()
        self._idle = asyncio.Event()
        self._idle.set()

    @property
    def draining(self) -> bool:
        """Whether a stop was asked for."""
        return self._draining

    @contextmanager
    def call(self) -> Iterator[None]:
        """Counts a call while the body runs.

        Raises:
            ShuttingDown: a stop was asked for.
        """
        if self._draining:
            raise ShuttingDown
        self._running += 1
        self._idle.clear()
        task = asyncio.current_task()
        if task is not None:
            self._tasks.add(task)
        try:
            yield
        finally:
            self._running -= 1
            if task is not None:
                self._tasks.discard(task)
            if not self._running:
                self._idle.set()

    @property
    def over(self) -> bool:
        """Whether the time of the calls that still run is up."""
        return self._over

    async def finish(self, grace_s: float) -> None:
        """Takes no call from now on, and waits until none runs, at most so long; then ends those that still do."""
        self._draining = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), grace_s)
        self._over = True
        for task in self._tasks:
            task.cancel()
