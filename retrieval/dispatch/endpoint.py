"""One server of a backend: the way to it, its queue, its breaker, and what is known of it."""

from __future__ import annotations

import time
from collections.abc import Callable

import structlog

from retrieval.dispatch.breaker import Breaker, BreakerState, Permit
from retrieval.dispatch.figures import LiveFigures, Recent
from retrieval.dispatch.lane import Lane
from retrieval.dispatch.stats import EndpointStats
from retrieval.dispatch.types import Arranger
from retrieval.errors import BackendUnavailable
from retrieval.generation.backend import Backend
from retrieval.route import Outcome
from retrieval.settings.generation import ResilienceSettings

_RESULTS = 20
_log = structlog.get_logger("headrace")


class Endpoint:
    """One server of a backend. For one event loop; the clock is that of `time.monotonic_ns`."""

    def __init__(
        self,
        backend: Backend,
        server: int,
        lane: Lane,
        arranger: Arranger,
        resilience: Callable[[], ResilienceSettings],
        *,
        now_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.backend = backend
        self.server = server
        self.lane = lane
        self.arranger = arranger
        self.resilience = resilience
        self.now_ns = now_ns
        self.figures = LiveFigures(now_ns)
        self.breaker = Breaker(resilience, now_ns)
        self.failures = Recent(_RESULTS, now_ns=now_ns)  # its last results: 1 for one that speaks against it
        self.sent_ns = 0  # when it last got a request
        self._attempts = dict.fromkeys(Outcome, 0)
        self._hedges = 0
        self._retries = 0

    @property
    def is_well(self) -> bool:
        """Whether it gets requests as usual."""
        return self.breaker.state is BreakerState.CLOSED

    @property
    def has_room(self) -> bool:
        """Whether a request would get a place at once."""
        return self.lane.running < self.lane.limit and not self.lane.waiting

    def sending(self, *, hedge: bool, retry: bool) -> None:
        """Notes that a request goes out."""
        self.sent_ns = self.now_ns()
        self._hedges += hedge
        self._retries += retry

    def begun(self, permit: Permit, first_token_ns: int) -> Permit:
        """Notes a first piece; returns the permit to come back with."""
        self.figures.began(first_token_ns)
        if permit.probe:
            _log.info("backend_closed", backend=self.backend.name, server=self.server)
        return self.breaker.begun(permit)

    def ended(self, outcome: Outcome, permit: Permit | None, *, blamed: bool) -> None:
        """Notes how an attempt ended; `permit` is None when nothing was sent, `blamed` when the server is at fault."""
        self._attempts[outcome] += 1
        if permit is None:
            return
        if outcome is Outcome.ANSWERED:
            self.failures.add(0)
            self.breaker.succeed(permit)
        elif blamed:
            self.failures.add(1)
            if self.breaker.fail(permit):
                pause_ms = round(self.breaker.left_alone_ns / 1e6)
                _log.warning("backend_opened", backend=self.backend.name, server=self.server, pause_ms=pause_ms)
        else:
            self.breaker.forget(permit)

    def left_alone(self) -> BackendUnavailable:
        """Returns the error of a request that it does not get, since it failed too often."""
        retry_after_s = self.breaker.left_alone_ns / 1e9
        reason = "it failed too often of late and gets nothing for a while"
        return BackendUnavailable(self.backend.name, reason, retry_after_s=retry_after_s)

    def stats(self, *, ejected: bool) -> EndpointStats:
        """Returns what is shown of it."""
        first_token_ns = self.figures.first_token_ns
        return EndpointStats(
            backend=self.backend.name,
            server=self.server,
            limit=self.lane.limit,
            running=self.lane.running,
            waiting=self.lane.waiting,
            breaker=self.breaker.state,
            ejected=ejected,
            attempts=dict(self._attempts),
            hedges=self._hedges,
            retries=self._retries,
            first_token_p50_ns=first_token_ns.quantile(0.5),
            first_token_p95_ns=first_token_ns.quantile(0.95),
            token_p50_ns=self.figures.token_ns.quantile(0.5),
        )
