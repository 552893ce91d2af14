"""The way to one server: how many requests it gets at once, and who waits for a place, how long, or not at all.

A request is refused at once when it would wait longer than it may: by its deadline, from which the time that an answer
usually takes is kept back, and by `max_wait_ms`. A place that comes too late to finish would be taken from another one
that could. The wait is predicted from how long places are held and from the request's position in fair order.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from retrieval.dispatch.holding import HoldingTime
from retrieval.dispatch.limit import AdaptiveLimit
from retrieval.dispatch.places import NoPlace, Places
from retrieval.dispatch.types import Ticket
from retrieval.errors import Overloaded
from retrieval.settings.generation import QueueSettings, TenantWeight


@dataclass(frozen=True, slots=True)
class LaneBounds:
    """What holds whatever the server's latency says."""

    max_concurrent: int
    max_queued: int
    initial_concurrent: int


class Lane:
    """The places of one server. For one event loop."""

    def __init__(
        self,
        name: str,
        bounds: LaneBounds,
        settings: Callable[[], QueueSettings],
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.name = name
        self._bounds = bounds
        self._settings = settings
        self._now_ns = now_ns
        self._weights_of: tuple[TenantWeight, ...] = ()
        self._weights: dict[str, float] = {}
        self._limit = AdaptiveLimit(bounds.initial_concurrent, bounds.max_concurrent, now_ns())
        self._holding = HoldingTime(now_ns())
        self._places = Places(self._limit.value, bounds.max_queued, self._weight)

    @property
    def limit(self) -> int:
        """How many requests the server gets at once now."""
        return self._limit.value

    @property
    def running(self) -> int:
        """Requests that have a place; more than `limit` for a while after it was lowered."""
        return self._places.running

    @property
    def waiting(self) -> int:
        """Requests that wait for one."""
        return self._places.waiting

    def wait_ns(self, ticket: Ticket) -> int:
        """Returns how long a new request would wait, as predicted; 0 when a place is free or nothing is known yet."""
        if self._places.free:
            return 0
        ahead = self._places.ahead_of(ticket.tenant, ticket.priority)
        nth = ahead + 1 + max(0, self.running - self.limit)
        return self._holding.until_free_ns(nth, self.limit, self._now_ns())

    async def acquire(self, ticket: Ticket) -> Place:
        """Takes a place, which must be released.

        Raises:
            Overloaded: there would be none in time, or there was none, or no room to wait for it.
        """
        asked_ns = self._now_ns()
        if self._places.free:
            patience_ns = 0
        else:
            patience_ns = self._patience_ns(ticket, asked_ns)
            if patience_ns <= 0 or self.wait_ns(ticket) > patience_ns:
                raise self._overloaded(ticket)
        try:
            await self._places.acquire(ticket.tenant, ticket.priority, patience_ns / 1e9)
        except NoPlace as error:
            raise self._overloaded(ticket) from error
        self._limit.sent(self.running)
        taken_ns = self._now_ns()
        return Place(taken_ns - asked_ns, partial(self._first_token, taken_ns), partial(self._released, taken_ns))

    def _patience_ns(self, ticket: Ticket, now_ns: int) -> int:
        useful_ns = ticket.deadline_ns - now_ns - self._holding.mean_ns
        waited_ns = now_ns - ticket.since_ns if ticket.since_ns else 0
        return min(self._settings().max_wait_ms * 1_000_000 - waited_ns, useful_ns)

    def _first_token(self, taken_ns: int, elapsed_ns: int) -> None:
        self._limit.first_token(taken_ns, taken_ns + elapsed_ns, self._settings().latency_tolerance)
        self._apply_limit()

    def _released(self, taken_ns: int, overloaded: bool) -> None:
        now_ns = self._now_ns()
        if overloaded:
            self._limit.refused(taken_ns, self.running, now_ns)
        else:
            self._holding.released(now_ns - taken_ns, now_ns)
        self._apply_limit()
        self._places.release()

    def _apply_limit(self) -> None:
        if self._limit.value != self._places.limit:
            self._places.set_bounds(self._limit.value, self._bounds.max_queued)

    def _weight(self, tenant: str) -> float:
        named = self._settings().tenants
        if named is not self._weights_of:  # they were reloaded
            self._weights_of, self._weights = named, {one.tenant: one.weight for one in named}
        return self._weights.get(tenant, 1.0)

    def _overloaded(self, ticket: Ticket) -> Overloaded:
        wait_ms = self.wait_ns(ticket) / 1e6 or float(self._settings().max_wait_ms)
        return Overloaded(f"requests to {self.name}", self.limit, max(1.0, wait_ms))


class Place:
    """A request's place at a server, until it is released."""

    def __init__(self, waited_ns: int, answered: Callable[[int], None], released: Callable[[bool], None]) -> None:
        self.waited_ns = waited_ns
        self._on_answer: Callable[[int], None] | None = answered
        self._on_release: Callable[[bool], None] | None = released

    def first_token(self, elapsed_ns: int) -> None:
        """Tells how long the server took to send the first token; only the first call counts."""
        if (tell := self._on_answer) is not None:
            self._on_answer = None
            tell(elapsed_ns)

    def release(self, *, overloaded: bool = False) -> None:
        """Gives the place back; only the first call counts.

        `overloaded` says that the server had no room for the request, or no time.
        """
        if (tell := self._on_release) is not None:
            self._on_release = None
            tell(overloaded)
