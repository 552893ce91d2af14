"""The way to the first piece of an answer: over servers, retries, hedges and the backends of the route, in turn.

Up to there nobody has seen anything, so all of this is free to try; after it nothing is tried any more.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass

from retrieval.dispatch.attempts import Exchange
from retrieval.dispatch.endpoint import Endpoint
from retrieval.dispatch.failures import Failure, is_transient, most_telling
from retrieval.dispatch.hedging import Race, answers_as_well, hedge_delay_s
from retrieval.dispatch.service import BackendService
from retrieval.dispatch.spending import HedgeBudget, RetryBudget
from retrieval.dispatch.types import Job, Leg, Route
from retrieval.errors import BackendTimeout, BackendUnavailable, NoBackendAllowed, Overloaded
from retrieval.route import GenerationReport, Outcome
from retrieval.settings.generation import ResilienceSettings
from retrieval.speech import BackendEnd, Delta

LONGEST_PAUSE_NS = 2 * 10**9
"""The longest that a server is waited for that asks for patience, while another backend may answer."""

_FAILED = frozenset({Outcome.FAILED, Outcome.TIMEOUT})
_REFUSED = frozenset({Outcome.REFUSED})


@dataclass(frozen=True, slots=True)
class Means:
    """What all requests share."""

    services: Mapping[str, BackendService]
    resilience: Callable[[], ResilienceSettings]
    retries: RetryBudget
    hedges: HedgeBudget
    now_ns: Callable[[], int]
    jitter: Callable[[], float]  # in [0, 1)


class Pursuit:
    """One request's attempts. `close` it when the answer has ended, whatever the end."""

    def __init__(self, route: Route, job: Job, means: Means) -> None:
        self._route = route
        self._job = job
        self._means = means
        self._started_ns = means.now_ns()
        self._exchanges: list[Exchange] = []
        self._races: list[Race] = []
        self._failures: list[Failure] = []
        self._refusals: list[Overloaded] = []
        self._left_alone: list[BackendUnavailable] = []
        self._paid = True  # whether the next request that goes out is paid for

    async def win(self) -> tuple[Exchange, Delta | BackendEnd]:
        """Returns the attempt that answers, and its first piece.

        Raises:
            BackendUnavailable, BackendTimeout: none does; the error that says most about it.
            Overloaded: none has room; with the shortest time after which one may.
        """
        for number, leg in enumerate(self._route.legs):
            if not self._job.permits(leg.service.settings.name):
                continue
            self._paid = True  # another backend is asked for the first time, which doubles nobody's load
            won = await self._ask(leg, last=number == len(self._route.legs) - 1)
            if won is not None:
                return won
        raise self._why_not()

    def report(self, winner: Exchange) -> GenerationReport:
        """Returns how the answer came about, once it is whole."""
        return GenerationReport(
            backend=winner.endpoint.backend.name,
            queue_ns=winner.queue_ns,
            first_token_ns=winner.first_token_ns,
            token_ns=winner.token_ns,
            total_ns=self._means.now_ns() - self._started_ns,
            attempts=tuple(exchange.attempt() for exchange in self._exchanges),
            passages=tuple(number for _, number in winner.arrangement.numbers),
        )

    def leave(self) -> None:
        """Notes that the caller has left."""
        for exchange in self._exchanges:
            exchange.abandon(Outcome.LEFT)

    async def close(self) -> None:
        """Stops all work and gives all places back."""
        async with AsyncExitStack() as stack:
            for exchange in self._exchanges:
                exchange.abandon()
                if not exchange.called_off:
                    stack.push_async_callback(exchange.close)
            for race in self._races:
                stack.push_async_callback(race.close)

    async def _ask(self, leg: Leg, *, last: bool) -> tuple[Exchange, Delta | BackendEnd] | None:
        """Asks one backend, again where that may help; None when it does not answer."""
        service = self._means.services[leg.service.settings.name]
        sent = 0
        while (endpoint := self._choose(service)) is not None:
            if endpoint in self._with(_FAILED) and not await self._pause(sent, patient=last):
                return None
            exchange = await self._enter(endpoint, leg)
            if exchange is None:
                continue
            if not self._job.permits(service.settings.name):  # the rules may have changed while it waited
                exchange.abandon(Outcome.REFUSED)
                exchange.release()
                return None
            sent += 1
            try:
                return await self._first(exchange, leg)
            except (BackendUnavailable, BackendTimeout) as failure:
                self._failures.append(failure)
                self._paid = False
                if not is_transient(failure) or sent > service.settings.retries:
                    return None
        self._left_alone.extend(each.left_alone() for each in service.endpoints)
        return None

    def _choose(self, service: BackendService) -> Endpoint | None:
        return service.choose(self._job, self._with(_FAILED), self._with(_REFUSED))

    def _with(self, outcomes: frozenset[Outcome]) -> list[Endpoint]:
        return [exchange.endpoint for exchange in self._exchanges if exchange.outcome in outcomes]

    async def _enter(self, endpoint: Endpoint, leg: Leg) -> Exchange | None:
        """Returns an attempt that has a place; None when there is none."""
        self._pay()
        exchange = Exchange(endpoint, leg, self._job, retry=bool(self._failures))
        self._exchanges.append(exchange)
        try:
            return exchange if await exchange.enter() else None
        except Overloaded as refusal:
            self._refusals.append(refusal)
            return None

    async def _first(self, exchange: Exchange, leg: Leg) -> tuple[Exchange, Delta | BackendEnd]:
        hedged = any(each.hedge for each in self._exchanges)
        delay_s = None if hedged else hedge_delay_s(exchange.endpoint, self._means.resilience())
        if delay_s is not None:
            race = Race(exchange)
            self._races.append(race)
            return await race.win(delay_s, lambda: self._hedge(leg))
        try:
            return exchange, await exchange.first()
        except (BackendUnavailable, BackendTimeout):
            await exchange.close()
            raise

    async def _pause(self, count: int, *, patient: bool) -> bool:
        """Gives a server that has failed time to recover, if there is time; returns whether to try it again."""
        failure = self._failures[-1]
        backoff_ns = self._means.resilience().backoff_ms * 10**6 * 2 ** (count - 1)
        pause_ns = backoff_ns * (0.5 + self._means.jitter())
        if isinstance(failure, BackendUnavailable):
            pause_ns = max(pause_ns, failure.retry_after_s * 1e9)
        if self._means.now_ns() + pause_ns >= self._job.params.deadline_ns:
            return False
        if not patient and pause_ns > LONGEST_PAUSE_NS:
            return False
        self._pay()
        await asyncio.sleep(pause_ns / 1e9)
        return True

    def _pay(self) -> None:
        """Pays for a request that is sent after another has failed; raises why that one did when it must not be."""
        late = bool(self._failures) and self._means.now_ns() >= self._job.params.deadline_ns
        if late or not (self._paid or self._means.retries.take()):
            raise self._why_not()
        self._paid = True

    def _hedge(self, leg: Leg) -> Exchange | None:
        """Returns a second request, to a server that has room now; None without one, or when there were enough."""
        for other in self._route.legs[self._route.legs.index(leg) :]:
            service = self._means.services[other.service.settings.name]
            complexity = self._route.report.complexity
            if other is not leg and not answers_as_well(service.settings, leg.service.settings, complexity):
                continue
            if not self._job.permits(service.settings.name):
                continue
            spare = service.spare(self._job, [exchange.endpoint for exchange in self._exchanges])
            if spare is not None and self._means.hedges.take():
                self._exchanges.append(Exchange(spare, other, self._job, hedge=True))
                return self._exchanges[-1]
        return None

    def _why_not(self) -> Exception:
        if self._failures:
            return most_telling(self._failures)
        if self._refusals:
            return min(self._refusals, key=lambda refusal: refusal.retry_after_ms)
        if not self._left_alone:
            return NoBackendAllowed(tuple((leg.service.settings.name, "rule") for leg in self._route.legs))
        return min(self._left_alone, key=lambda error: error.retry_after_s)
