"""Lets so many requests run at once and so many wait; the rest are refused at once.

Who waits is served fairly among tenants, a single tenant's requests first come, first served; see
`retrieval.dispatch.fair_waiting`.
"""

from __future__ import annotations

import time

from retrieval.deadline import Deadline
from retrieval.dispatch.places import NoPlace, Places
from retrieval.errors import Overloaded
from retrieval.route import Priority


class Admission:
    """Bounds the requests that run at once. The bounds may change while it works."""

    def __init__(self, max_concurrent: int, max_queued: int, max_wait_ms: int) -> None:
        self._places = Places(max_concurrent, max_queued, weight=lambda tenant: 1.0)
        self._max_wait_ms = max_wait_ms

    def set_bounds(self, max_concurrent: int, max_queued: int, max_wait_ms: int) -> None:
        """Takes new bounds; requests that run or wait are not touched by smaller ones."""
        self._max_wait_ms = max_wait_ms
        self._places.set_bounds(max_concurrent, max_queued)

    @property
    def running(self) -> int:
        """Requests that hold a permit."""
        return self._places.running

    @property
    def waiting(self) -> int:
        """Requests that wait for one."""
        return self._places.waiting

    async def acquire(self, deadline: Deadline, tenant: str = "", priority: Priority = Priority.INTERACTIVE) -> int:
        """Takes a permit, which `release` gives back, and returns the nanoseconds that it waited.

        Raises:
            Overloaded: too many wait already, or none became free in time.
        """
        if self._places.free:
            await self._places.acquire(tenant, priority, 0.0)
            return 0
        asked_ns = time.monotonic_ns()
        try:
            await self._places.acquire(tenant, priority, min(self._max_wait_ms / 1e3, deadline.remaining_s()))
        except NoPlace as error:
            raise Overloaded("running requests", self._places.limit, float(self._max_wait_ms)) from error
        return time.monotonic_ns() - asked_ns

    def release(self) -> None:
        """Gives a permit to whose turn it is, or back."""
        self._places.release()
