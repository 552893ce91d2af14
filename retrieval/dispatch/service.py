"""A configured backend with all of its servers: what the router sees, and which server gets the next request."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import AsyncExitStack
from statistics import fmean

from retrieval.assembly import PassageCounter
from retrieval.dispatch.choosing import pick
from retrieval.dispatch.ejection import ejected
from retrieval.dispatch.endpoint import Endpoint
from retrieval.dispatch.figures import Recent
from retrieval.dispatch.stats import EndpointStats
from retrieval.dispatch.types import Job, Outlook, Ticket
from retrieval.settings.generation import BackendSettings


class BackendService:
    """A backend and its servers, at least one."""

    def __init__(self, settings: BackendSettings, endpoints: Sequence[Endpoint]) -> None:
        self._settings = settings
        self._endpoints = tuple(endpoints)

    @property
    def settings(self) -> BackendSettings:
        """How it is configured."""
        return self._settings

    @property
    def model(self) -> str:
        """The model, for cache keys."""
        return self._endpoints[0].backend.model

    @property
    def counter(self) -> PassageCounter:
        """Counts as its model does."""
        return self._endpoints[0].backend.counter

    @property
    def endpoints(self) -> tuple[Endpoint, ...]:
        """Its servers."""
        return self._endpoints

    def outlook(self, ticket: Ticket) -> Outlook:
        """Returns what a new request may expect: the shortest wait, and the mean of the servers' figures."""
        taking = [endpoint for endpoint in self._endpoints if endpoint.breaker.admits]
        figures = [endpoint.figures for endpoint in taking or self._endpoints]
        return Outlook(
            healthy=bool(taking),
            wait_ns=min(endpoint.lane.wait_ns(ticket) for endpoint in taking or self._endpoints),
            first_token_ns=_mean_median([each.first_token_ns for each in figures]),
            token_ns=_mean_median([each.token_ns for each in figures]),
            output_tokens=_mean([each.output_tokens.mean for each in figures]),
            running=sum(endpoint.lane.running for endpoint in self._endpoints),
            waiting=sum(endpoint.lane.waiting for endpoint in self._endpoints),
        )

    def choose(self, job: Job, tried: Collection[Endpoint], refused: Collection[Endpoint]) -> Endpoint | None:
        """Returns the server for a request; None when none takes it.

        One of `refused` is never chosen, one of `tried`, where it failed, only when no other takes it; one that does
        much worse than its siblings only when they do not take it.
        """
        taking = [each for each in self._endpoints if each.breaker.admits and each not in refused]
        fresh = [each for each in taking if each not in tried]
        left_out = ejected(self._endpoints)
        kept = [each for each in fresh if each not in left_out]
        pool = kept or fresh or taking
        return pick(_key(job), pool, job.ticket) if pool else None

    def spare(self, job: Job, taken: Collection[Endpoint]) -> Endpoint | None:
        """Returns a server that is well and has a place free for a request sent besides another; None without one."""
        left_out = ejected(self._endpoints)
        free = [
            each
            for each in self._endpoints
            if each not in taken and each not in left_out and each.is_well and each.has_room
        ]
        return pick(_key(job), free, job.ticket) if free else None

    def stats(self) -> tuple[EndpointStats, ...]:
        """Returns what is shown of each server."""
        left_out = ejected(self._endpoints)
        return tuple(each.stats(ejected=each in left_out) for each in self._endpoints)

    async def close(self) -> None:
        """Closes all servers' backends. Nothing may be streamed afterwards."""
        async with AsyncExitStack() as stack:
            for endpoint in self._endpoints:
                stack.push_async_callback(endpoint.backend.close)


def _key(job: Job) -> str:
    return job.affinity or job.root


def _mean_median(recent: Sequence[Recent]) -> int:
    return round(_mean([each.quantile(0.5) for each in recent]))


def _mean(values: Sequence[float]) -> float:
    """The mean of those that are known; 0 without one."""
    known = [value for value in values if value]
    return fmean(known) if known else 0.0
