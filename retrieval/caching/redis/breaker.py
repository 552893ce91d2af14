"""When Redis is left alone, and how its return is noticed.

After some failures in a row nobody asks Redis any more: requests pay nothing for it. A probe in the background, never a
request, finds out when it is back. Pauses between probes grow to `MAX_PAUSE_S`, so a return is noticed well within a
second; they start small again only after Redis has been well for `WELL_AFTER_S`, so that a server which answers probes
and fails requests is not tried at every turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

FIRST_PAUSE_S = 0.05
MAX_PAUSE_S = 0.4
WELL_AFTER_S = 1.0

_log = structlog.get_logger("headrace")


class Breaker:
    """Counts failures in a row. Starts open: nothing is known of Redis until a probe has succeeded."""

    def __init__(self, failures_to_open: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._failures_to_open = failures_to_open
        self._clock = clock
        self._failures = 0
        self._closed_at_s = clock()
        self._pause_s = FIRST_PAUSE_S
        self._opened = asyncio.Event()
        self._opened.set()
        self._closed = asyncio.Event()

    @property
    def is_open(self) -> bool:
        """Whether Redis is left alone."""
        return self._opened.is_set()

    def succeed(self) -> None:
        """Counts a call that was answered in time."""
        self._failures = 0

    def fail(self) -> None:
        """Counts a call that was not; opens when there were enough in a row."""
        self._failures += 1
        if self._failures >= self._failures_to_open:
            self.open()

    def open(self) -> None:
        """Leaves Redis alone from now on."""
        if self.is_open:
            return
        if self._clock() - self._closed_at_s >= WELL_AFTER_S:
            self._pause_s = FIRST_PAUSE_S
        self._closed.clear()
        self._opened.set()

    def close(self) -> None:
        """Uses Redis from now on."""
        self._failures = 0
        self._closed_at_s = self._clock()
        self._opened.clear()
        self._closed.set()

    def next_pause_s(self) -> float:
        """Returns how long to wait before the next probe; twice as long each time, up to a bound."""
        pause_s = self._pause_s
        self._pause_s = min(2 * pause_s, MAX_PAUSE_S)
        return pause_s

    async def wait_open(self) -> None:
        """Waits until Redis is left alone."""
        await self._opened.wait()

    async def wait_closed(self) -> None:
        """Waits until Redis is used."""
        await self._closed.wait()


async def probe_while_open(
    breaker: Breaker,
    probe: Callable[[], Awaitable[bool]],
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Closes the breaker whenever a probe succeeds; runs until it is cancelled."""
    while True:
        await breaker.wait_open()
        while not await probe():
            await sleep(breaker.next_pause_s())
        breaker.close()
        _log.info("redis_available")
        await breaker.wait_open()
        _log.warning("redis_unavailable")
        await sleep(breaker.next_pause_s())
