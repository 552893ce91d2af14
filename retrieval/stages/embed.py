"""Query to vectors: the dense one from the cache or the encoder, the sparse one inline with this collection's IDF."""

from __future__ import annotations

from dataclasses import dataclass

from encoders.bm25 import Bm25Statistics, query_vector
from encoders.errors import WorkExpired
from encoders.terms import count_terms
from encoders.types import AsyncDenseEncoder, EncodedQuery, SparseVector
from retrieval.clock import Stage
from retrieval.deadline import Deadline
from retrieval.errors import DeadlineExceeded, QueryNotEncoded
from retrieval.trace import Trace
from retrieval.types import Mode


@dataclass(frozen=True, slots=True)
class DenseQuery:
    """A query's vectors, and whether all of the query is in them."""

    encoded: EncodedQuery
    token_count: int
    truncated: bool


async def embed_dense(encoder: AsyncDenseEncoder, query: str, trace: Trace, deadline: Deadline) -> DenseQuery:
    """Encodes a query ahead of all bulk work; the encoder itself ends at the deadline.

    Raises:
        DeadlineExceeded: it was not computed in time.
        QueryNotEncoded: the encoder fails on this query.
        SchedulerFull, SchedulerStopped: the encoder takes nothing.
    """
    outcome = await encoder.encode_query(query, deadline.at_ns)
    trace.clock.charge(queue_ns=outcome.queue_ns, compute_ns=outcome.compute_ns)
    if isinstance(outcome.error, WorkExpired):
        raise DeadlineExceeded(Stage.EMBED.value, deadline.budget_ms) from outcome.error
    if outcome.value is None:
        raise QueryNotEncoded(encoder.model_id) from outcome.error
    return DenseQuery(outcome.value, outcome.token_count, outcome.truncated)


def embed_sparse(query: str, mode: Mode, statistics: Bm25Statistics) -> SparseVector | None:
    """Returns the BM25 query vector; None when the branch is not asked."""
    return None if mode is Mode.DENSE else query_vector(count_terms(query), statistics)
