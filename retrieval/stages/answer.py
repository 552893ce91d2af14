"""Route to answer: written by a backend, once for all who ask the same meanwhile, or replayed from the cache.

What was written is kept when it may serve again, and the cache learns how answers to similar questions compare with it.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial

import structlog

from retrieval.answers.asking import Asked
from retrieval.answers.cache import AnswerCache, Made
from retrieval.answers.gates import Match
from retrieval.answers.shadow import Shadow
from retrieval.caching.chain import Bounds
from retrieval.caching.keys import CacheKey
from retrieval.caching.stream_flight import StreamFlight
from retrieval.deadline import Deadline
from retrieval.dispatch.answering import Ended, answer_pieces, size_of
from retrieval.dispatch.dispatcher import Dispatcher
from retrieval.dispatch.types import Route
from retrieval.errors import BackendError, DeadlineExceeded, Overloaded
from retrieval.reuse import ReuseReport
from retrieval.routing.router import Router
from retrieval.scope import within
from retrieval.settings.generation import GenerationSettings
from retrieval.speech import Delta
from retrieval.stages.ask import Inquiry, Times
from retrieval.types import Found

_BOUNDS = Bounds(max_items=1_000_000, max_bytes=2 * 1024 * 1024)
_log = structlog.get_logger("headrace")


@dataclass(frozen=True, slots=True)
class Writing:
    """An answer that is to be written or replayed."""

    inquiry: Inquiry
    found: Found
    match: Match
    asked: Asked | None  # None when it is for this request alone, and nothing may be kept
    route: Route | None  # None when nothing is to be written


class Writer:
    """Writes answers. `settings` gives those in force."""

    def __init__(
        self, cache: AnswerCache, router: Router, dispatcher: Dispatcher, settings: Callable[[], GenerationSettings]
    ) -> None:
        self._cache = cache
        self._router = router
        self._dispatcher = dispatcher
        self._settings = settings
        self._flight: StreamFlight[Delta | Ended] = StreamFlight(_BOUNDS, size_of)
        self._shadow = Shadow()

    @asynccontextmanager
    async def stream(self, writing: Writing, deadline: Deadline) -> AsyncIterator[AsyncIterator[Delta | Ended]]:
        """Gives the pieces of the answer, none of them empty, then one `Ended`; leaving the body ends the work.

        Raises:
            BackendError: no backend of the route answers, or one broke off; the answer is not whole.
            Overloaded: all of them are full.
        """
        asked = writing.asked
        if asked is None or asked.control.no_cache:
            pieces = self._pieces(writing, Times(deadline.at_ns, deadline.at_ns, time.monotonic_ns()))
        else:
            pieces = self._shared(_stream_key(asked, writing), writing, deadline)
        async with aclosing(pieces):
            yield pieces

    def finish(self, writing: Writing, ended: Ended) -> ReuseReport:
        """Keeps a new answer, learns from it, and reports both."""
        asked, match = writing.asked, writing.match
        if asked is None or ended.stand_in:
            return match.report
        made = Made(ended.verified, ended.end, ended.report.backend)
        if match.pending is not None and made.whole:
            self._cache.learn(asked, match.pending, ended.verified.text)
        if not self._cache.keep(asked, writing.found, made):
            return match.report
        return replace(match.report, stored=True, key=asked.key.hex)

    def compare_later(self, writing: Writing) -> ReuseReport:
        """Starts a new answer beside one that served, if it was drawn for that; returns the report of both."""
        report = writing.match.report
        if (asked := writing.asked) is not None:
            self._cache.served(writing.inquiry.request.retrieve.request_id, asked.scope.space, writing.match)
        if not report.shadowed:
            return report
        if not self._shadow.has_room:
            return replace(report, shadowed=False)
        self._shadow.start(self._compare(writing))
        return report

    async def settle(self) -> None:
        """Waits for the answers that are made to compare."""
        await self._shadow.settle()

    async def close(self) -> None:
        """Gives up what is being written."""
        await self._shadow.close()
        await self._flight.close()

    async def _shared(self, key: CacheKey, writing: Writing, deadline: Deadline) -> AsyncGenerator[Delta | Ended, None]:
        """Gives what is written for all who ask the same. Who asked first waits in the queue, for as long as he has.

        When he was refused, the next one asks for himself, who may have more time.
        """
        begun, since_ns = False, time.monotonic_ns()
        while True:
            times = Times(deadline.at_ns, self._latest_ns(), since_ns)
            stream = self._flight.follow(key, partial(self._pieces, writing, times))
            try:
                async with aclosing(stream):
                    async for piece in stream:
                        begun = True
                        yield piece
                return
            except Overloaded:
                if stream.led or begun:
                    raise

    async def _compare(self, writing: Writing) -> None:
        assert writing.asked is not None
        assert writing.match.pending is not None
        try:
            latest_ns = self._latest_ns()
            times = Times(latest_ns, latest_ns, time.monotonic_ns())
            async with aclosing(self._pieces(writing, times)) as pieces:
                async for piece in pieces:
                    if isinstance(piece, Ended) and Made(piece.verified, piece.end, piece.report.backend).whole:
                        text = piece.verified.text
                        agree = self._cache.learn(writing.asked, writing.match.pending, text, shadowed=True)
                        _log.info("answer_compared", key=writing.match.report.key, agree=agree)
        except (BackendError, DeadlineExceeded, Overloaded) as error:
            _log.warning("answer_not_compared", key=writing.match.report.key, error=type(error).__name__)

    def _pieces(self, writing: Writing, times: Times) -> AsyncGenerator[Delta | Ended, None]:
        route = writing.route
        assert route is not None
        permits = partial(self._router.permits, writing.inquiry.asking, writing.found)
        events = self._dispatcher.stream(route, writing.inquiry.job(times, permits))
        return answer_pieces(events, route.wanted or route.report.backend, writing.found.context)

    def _latest_ns(self) -> int:
        """No caller's deadline is that of work that others may join."""
        return Deadline.after(self._settings().timeout_ms / 1e3).at_ns


def _stream_key(asked: Asked, writing: Writing) -> CacheKey:
    """Names an answer by its exact prompt, who may write it, and how it waits: nobody joins what is not for him."""
    assert writing.route is not None
    legs = sorted(leg.service.settings.name for leg in writing.route.legs)
    priority = writing.inquiry.request.priority.name
    return within(asked.partition, "stream", asked.question, writing.found.context.text, priority, *legs)
