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
        try:
            yield
        finally:
            self._running -= 1
            if not self._running:
                self._idle.set()

    async def finish(self, grace_s: float) -> None:
        """Takes no call from now on, and waits until none runs, at most so long."""
        self._draining = True
        with suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), grace_s)
