"""Results of searches: how much they weigh, and how requests that ask the same meanwhile share the work for one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine
from typing import Any

from encoders.errors import WorkExpired
from indexers.types import Passage
from retrieval.caching.keys import CacheKey
from retrieval.caching.single_flight import SingleFlight
from retrieval.clock import Stage
from retrieval.deadline import Deadline
from retrieval.errors import DeadlineExceeded, FlightCancelled
from retrieval.types import Found

_OBJECT_BYTES = 3000
_HIT_BYTES = 1500  # the objects of a hit without its texts, by tracemalloc on CPython 3.11
_FIELD_BYTES = 150
_SLACK = 0.1  # of a caller's time; a result made under a deadline that much earlier is as good as its own


class ResultFlight:
    """Retrievals under way. What a deadline has shaped is given to those alone who have no more time themselves."""

    def __init__(self) -> None:
        self._flight: SingleFlight[Found] = SingleFlight()

    async def join(self, key: CacheKey, deadline: Deadline) -> Found | None:
        """Waits for the retrieval under way; None when there is none, or what it gave does not do for this caller.

        Raises:
            DeadlineExceeded: the caller's time is up.
        """
        async with deadline.bound(Stage.LOOKUP):
            joined = await self._flight.join(key, lambda found: _does(found, deadline), _was_another_deadline)
        return None if joined is None else joined.value

    async def run(
        self, key: CacheKey, work: Callable[[], Coroutine[Any, Any, Found]], deadline: Deadline
    ) -> tuple[Found, bool]:
        """Returns what the work gives, and whether it was this caller's: others may have begun the same meanwhile."""
        joined = await self._flight.run(key, work, lambda found: _does(found, deadline), _was_another_deadline)
        return joined.value, joined.led

    async def close(self) -> None:
        """Gives up the retrievals under way."""
        await self._flight.close()


def size_of(found: Found) -> int:
    """Returns the bytes that a result takes, about."""
    hits = sum(_passage_bytes(hit.passage) + _HIT_BYTES for hit in found.hits)
    merged = sum(sys.getsizeof(one.passage.text) for one in found.context.citations if len(one.chunk_ids) > 1)
    vectors = 0 if found.dense is None or found.dense.tokens is None else found.dense.tokens.nbytes
    return _OBJECT_BYTES + hits + merged + vectors + sys.getsizeof(found.context.text)


def _passage_bytes(passage: Passage) -> int:
    texts = (passage.text, passage.header, passage.title, passage.source_uri)
    return sum(map(sys.getsizeof, texts)) + _FIELD_BYTES * len(passage.metadata)


def _does(found: Found, deadline: Deadline) -> bool:
    return not found.degraded or found.deadline_ns + int(deadline.budget_ms * 1e6 * _SLACK) >= deadline.at_ns


def _was_another_deadline(error: BaseException) -> bool:
    return isinstance(error, DeadlineExceeded | WorkExpired | FlightCancelled)
