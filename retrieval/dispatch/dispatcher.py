"""Gets an answer from the backends of a route: once a first piece has come, from that one alone.

A dispatcher knows no backend but those of the route: rules about who may see a request were applied there, and no
failure leads around them.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack

from retrieval.dispatch.pursuit import Means, Pursuit
from retrieval.dispatch.service import BackendService
from retrieval.dispatch.spending import HedgeBudget, RetryBudget
from retrieval.dispatch.stats import EndpointStats
from retrieval.dispatch.types import AnswerEvent, Began, Finished, Job, Route
from retrieval.settings.generation import ResilienceSettings
from retrieval.speech import Delta


class Dispatcher:
    """Sends requests to backends. For one event loop; the clock is that of `time.monotonic_ns`.

    `resilience` gives the settings in force.
    """

    def __init__(
        self,
        services: Mapping[str, BackendService],
        resilience: Callable[[], ResilienceSettings],
        *,
        now_ns: Callable[[], int] = time.monotonic_ns,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        self._services = services
        retries = RetryBudget(lambda: resilience().retry_share, now_ns)
        hedges = HedgeBudget(lambda: resilience().hedge_share)
        self._means = Means(services, resilience, retries, hedges, now_ns, jitter)

    @property
    def services(self) -> Mapping[str, BackendService]:
        """The backends by name, in configured order."""
        return self._services

    async def stream(self, route: Route, job: Job) -> AsyncGenerator[AnswerEvent, None]:
        """Gives one `Began`, the pieces as they come, then one `Finished`; without it the answer was cut.

        Close the generator (`contextlib.aclosing`) to stop the work; it has stopped everywhere when that returns.

        Raises:
            BackendUnavailable, BackendTimeout: no backend of the route answers.
            BackendCut: the one that answered broke off.
            Overloaded: none has room; with the shortest time after which one may.
        """
        self._means.retries.count()
        self._means.hedges.count()
        pursuit = Pursuit(route, job, self._means)
        try:
            exchange, piece = await pursuit.win()
            yield Began(exchange.endpoint.backend.name, exchange.prompt)
            while isinstance(piece, Delta):
                yield piece
                piece = await exchange.next()
            exchange.finish(piece)
            await exchange.close()
            yield Finished(piece, pursuit.report(exchange))
        except (asyncio.CancelledError, GeneratorExit):
            pursuit.leave()
            raise
        finally:
            await pursuit.close()

    def stats(self) -> tuple[EndpointStats, ...]:
        """Returns what is shown of each server of each backend."""
        return tuple(stats for service in self._services.values() for stats in service.stats())

    async def close(self) -> None:
        """Closes all backends, when no stream is left."""
        async with AsyncExitStack() as stack:
            for service in self._services.values():
                stack.push_async_callback(service.close)
