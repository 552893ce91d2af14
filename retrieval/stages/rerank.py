"""Hits to reranked hits: the cross-encoder's opinion combined with the first stage's, for all of them or for none.

A list in which some scores are the cross-encoder's and some are not cannot be ordered honestly. So when a pair is not
scored in time, or fails, the whole list keeps its order and the reply says so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from encoders.errors import EncoderError
from rerank.calibrate import Weights, combine, probability, rank
from rerank.errors import RerankIncomplete
from rerank.types import AsyncReranker, PairScores
from retrieval.clock import RerankReport
from retrieval.deadline import Deadline
from retrieval.trace import Trace
from retrieval.types import Hit, Thresholds


async def rerank_hits(
    reranker: AsyncReranker,
    query: str,
    hits: Sequence[Hit],
    thresholds: Thresholds,
    trace: Trace,
    deadline: Deadline,
) -> list[Hit]:
    """Returns the best `rerank_depth` hits in their new order; the same hits in the old order when that failed."""
    pool = list(hits[: thresholds.rerank_depth])
    if not pool:
        return pool
    share_ns = deadline.share_ns(thresholds.rerank_deadline_share)
    try:
        pairs = await reranker.score(query, [hit.passage.embedding_text for hit in pool], share_ns)
    except RerankIncomplete as error:
        return _keep(pool, error.reason, error.scored_pairs, reranker.model_id, trace)
    except EncoderError:
        return _keep(pool, "unavailable", 0, reranker.model_id, trace)
    trace.clock.charge(queue_ns=pairs.queue_ns, compute_ns=pairs.compute_ns)
    trace.rerank = RerankReport(reranker.model_id, len(pool), pairs.token_count, "all")
    return _reorder(pool, pairs, thresholds)


def _reorder(pool: list[Hit], pairs: PairScores, thresholds: Thresholds) -> list[Hit]:
    first = np.array([hit.score for hit in pool], dtype=np.float64)
    scores = combine(first, pairs.logits, Weights(thresholds.first_stage_weight, thresholds.cross_encoder_weight))
    order = rank(scores, pairs.logits, np.arange(len(pool)), [hit.passage.chunk_id for hit in pool])
    scored = [
        replace(hit, score=float(score), parts=replace(hit.parts, rerank=float(opinion)))
        for hit, score, opinion in zip(pool, scores, probability(pairs.logits), strict=True)
    ]
    return [scored[place] for place in order]


def _keep(pool: list[Hit], reason: str, scored_pairs: int, model: str, trace: Trace) -> list[Hit]:
    trace.degrade(f"rerank_{reason}")
    trace.rerank = RerankReport(model, scored_pairs, 0, reason)
    return pool
