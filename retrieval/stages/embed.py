"""Query to vectors: the dense one from the cache or the encoder, the sparse one as the collection weighs its terms."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from encoders.bm25 import Bm25Statistics, query_vector
from encoders.errors import WorkExpired
from encoders.sparse import AsyncSparseEncoder
from encoders.term_statistics import TermStatistics
from encoders.terms import count_terms
from encoders.types import AsyncDenseEncoder, EncodedQuery, Outcome, SparseVector
from retrieval.caching.keys import CacheKey
from retrieval.caching.single_flight import SingleFlight
from retrieval.clock import Stage
from retrieval.deadline import Deadline
from retrieval.errors import DeadlineExceeded, QueryNotEncoded
from retrieval.trace import Trace

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class DenseQuery:
    """A query's vectors, and whether all of the query is in them."""

    encoded: EncodedQuery
    token_count: int
    truncated: bool


class DenseEmbedding:
    """Encodes queries ahead of all bulk work; the same query once for all who ask meanwhile."""

    def __init__(self) -> None:
        self._flight: SingleFlight[Outcome[EncodedQuery]] = SingleFlight()

    async def embed(
        self, encoder: AsyncDenseEncoder, query: str, shared_as: CacheKey | None, trace: Trace, deadline: Deadline
    ) -> DenseQuery:
        """Encodes a query; without `shared_as`, a key that the model is part of, for this request alone.

        Raises:
            DeadlineExceeded: it was not computed in time.
            QueryNotEncoded: the encoder fails on this query.
            SchedulerFull, SchedulerStopped: the encoder takes nothing.
        """
        if shared_as is None:
            outcome, led = await encoder.encode_query(query, deadline.at_ns), True
        else:
            # No caller's deadline is the work's: it is given up when the last one has left.
            async with deadline.bound(Stage.EMBED):
                joined = await self._flight.run(shared_as, partial(encoder.encode_query, query, None))
            outcome, led = joined.value, joined.led
        if led:
            trace.clock.charge(queue_ns=outcome.queue_ns, compute_ns=outcome.compute_ns)
        vector = _value(encoder.model_id, outcome, deadline)
        return DenseQuery(vector, outcome.token_count, outcome.truncated)

    async def close(self) -> None:
        """Gives up what is being encoded."""
        await self._flight.close()


async def embed_sparse(
    encoder: AsyncSparseEncoder | None, query: str, statistics: TermStatistics, trace: Trace, deadline: Deadline
) -> SparseVector:
    """Returns the weights of a query's terms: of BM25 inline, learned ones from the encoder.

    Raises:
        DeadlineExceeded, QueryNotEncoded, SchedulerFull, SchedulerStopped: as `DenseEmbedding.embed`.
    """
    if isinstance(statistics, Bm25Statistics):
        return query_vector(count_terms(query), statistics)
    if encoder is None:  # the catalog opens no collection of a model that is not there
        raise QueryNotEncoded("bm25")
    outcome = await encoder.encode_query(query, deadline.at_ns)
    trace.clock.charge(queue_ns=outcome.queue_ns, compute_ns=outcome.compute_ns)
    vector = _value(encoder.model_id, outcome, deadline)
    if outcome.truncated and not trace.query_truncated:
        trace.query_truncated = True
        trace.degrade("query_truncated")
    return vector


def _value(model_id: str, outcome: Outcome[T], deadline: Deadline) -> T:
    if isinstance(outcome.error, WorkExpired):
        raise DeadlineExceeded(Stage.EMBED.value, deadline.budget_ms) from outcome.error
    if outcome.value is None:
        raise QueryNotEncoded(model_id) from outcome.error
    return outcome.value
