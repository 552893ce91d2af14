"""Hits to reranked hits: late interaction orders all of them, then the cross-encoder refines the order where it pays.

A list in which some scores are a step's own and some are not cannot be ordered honestly. So when a step cannot score
what it must in time, or fails, the whole list keeps the order that it had before the step, and the reply says so; and
once the cross-encoder has stopped, only hits that it scored are returned.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from encoders.types import AsyncDenseEncoder
from indexers.index import Index
from rerank.anytime import AnytimeReranker, Pool, Refined
from rerank.calibrate import combine, probability, rank
from rerank.errors import LateIncomplete, Reason, RerankIncomplete
from rerank.progress import Aim
from rerank.score_cache import Asker
from rerank.stopping import is_certain
from rerank.types import AsyncReranker
from retrieval.caching.pair_scores import PairScores
from retrieval.clock import LateReport, RerankReport
from retrieval.deadline import Deadline
from retrieval.scope import Scope
from retrieval.stages.embed import DenseQuery
from retrieval.stages.late import LateInteraction, LateQuery, skip_reason
from retrieval.trace import Trace
from retrieval.types import Hit, RetrieveRequest, ScoreParts, Thresholds


@dataclass(frozen=True, slots=True)
class Question:
    """What hits are reranked for."""

    request: RetrieveRequest
    dense: DenseQuery | None  # None when the query was not embedded
    encoder: AsyncDenseEncoder  # of the index's vectors
    index: Index
    scope: Scope


class Cascade:
    """What reranks: late interaction first, then the cross-encoder if there is one."""

    def __init__(self, late: LateInteraction, cross_encoder: AsyncReranker | None, scores: PairScores) -> None:
        self._late = late
        self._scores = scores
        self._revision = "" if cross_encoder is None else cross_encoder.revision
        self._model_id = "" if cross_encoder is None else cross_encoder.model_id
        self._anytime = None if cross_encoder is None else AnytimeReranker(cross_encoder, scores)

    def depth(self, thresholds: Thresholds, dense: DenseQuery | None) -> int:
        """Returns how many hits would be reranked; 0 when neither step can take part."""
        able = self._anytime is not None or not skip_reason(thresholds, dense)
        return thresholds.rerank_depth if thresholds.rerank and able else 0

    async def rerank(self, question: Question, hits: Sequence[Hit], trace: Trace, deadline: Deadline) -> list[Hit]:
        """Returns the best `rerank_depth` hits in their new order; in the order before a step that failed."""
        thresholds = question.request.thresholds
        pool, share_ns = list(hits[: thresholds.rerank_depth]), deadline.share_ns(thresholds.rerank_deadline_share)
        skipped = skip_reason(thresholds, question.dense)
        report = trace.rerank = RerankReport(self._model_id, 0, 0, None, late=LateReport(skipped=skipped))
        if pool and not skipped:
            try:
                pool, late = await self._by_late(question, pool, share_ns, trace)
            except LateIncomplete as error:
                return _keep(pool, report, error.reason, trace)
            report = trace.rerank = replace(report, stop="all", late=late)
        if not pool or self._anytime is None:
            return pool
        if is_certain(_scores(pool), thresholds.gate_margin):
            trace.rerank = replace(report, stop="gate")
            return pool
        return await self._by_cross_encoder(question, pool, report, share_ns, trace)

    async def _by_late(
        self, question: Question, pool: list[Hit], share_ns: int, trace: Trace
    ) -> tuple[list[Hit], LateReport]:
        assert question.dense is not None
        assert question.dense.encoded.tokens is not None
        thresholds = question.request.thresholds
        encoder, tokens = question.encoder, question.dense.encoded.tokens
        query = LateQuery(tokens, encoder, question.index, question.scope, thresholds.use_cache, share_ns)
        late = await self._late.score(query, [hit.passage for hit in pool], trace)
        scores = thresholds.mixture.before(_scores(pool), late.scores)
        scored = [
            Hit(hit.passage, float(score), _with_late(hit.parts, float(opinion)))
            for hit, score, opinion in zip(pool, scores, late.scores, strict=True)
        ]
        order = rank(scores, scores, np.arange(len(pool)), [hit.passage.chunk_id for hit in pool])
        return [scored[place] for place in order], LateReport(encoder.model_id, len(pool), late.computed)

    async def _by_cross_encoder(
        self, question: Question, pool: list[Hit], report: RerankReport, share_ns: int, trace: Trace
    ) -> list[Hit]:
        assert self._anytime is not None
        request, thresholds = question.request, question.request.thresholds
        weights = thresholds.mixture.weights(late_heard=report.late.passages > 0)
        aim = Aim(thresholds.top_k, weights, thresholds.stop_rule)
        texts = [hit.passage.embedding_text for hit in pool]
        if thresholds.use_cache and not trace.lacks_shared_tier:
            # Asked once a request: a tier that did not answer the look-up must not cost its budget twice.
            known = await self._scores.load(Asker(request.tenant, self._revision, request.query), texts)
            if not known:
                trace.without_shared_tier()
        candidates = Pool(request.tenant, request.query, texts, _scores(pool), thresholds.use_cache)
        try:
            refined = await self._anytime.refine(candidates, aim, share_ns)
        except RerankIncomplete as error:
            report = replace(report, pairs=error.scored_pairs, tokens=error.scored_tokens)
            return _keep(pool, report, error.reason, trace)
        trace.clock.charge(queue_ns=refined.queue_ns, compute_ns=refined.compute_ns)
        trace.rerank = replace(
            report,
            pairs=refined.pair_count,
            tokens=refined.token_count,
            stop=refined.stop,
            cached_pairs=refined.cached_count,
        )
        if refined.stop == "deadline":
            trace.degrade("rerank_shallower" if refined.usable else "rerank_deadline")
        return _refined(pool, refined, aim) if refined.usable else pool


def _refined(pool: list[Hit], refined: Refined, aim: Aim) -> list[Hit]:
    """Returns the hits that have a logit, by their final score; equal ones by logit, previous rank and id."""
    places = np.flatnonzero(~np.isnan(refined.logits))
    kept, logits = [pool[place] for place in places], refined.logits[places]
    scores = combine(_scores(kept), logits, aim.weights)
    scored = [
        replace(hit, score=float(score), parts=replace(hit.parts, rerank=float(opinion)))
        for hit, score, opinion in zip(kept, scores, probability(logits), strict=True)
    ]
    order = rank(scores, logits, places, [hit.passage.chunk_id for hit in kept])
    return [scored[place] for place in order]


def _keep(pool: list[Hit], report: RerankReport, reason: Reason, trace: Trace) -> list[Hit]:
    trace.degrade(f"rerank_{reason}")
    trace.rerank = replace(report, stop=reason)
    return pool


def _with_late(parts: ScoreParts, late: float) -> ScoreParts:
    """Returns the scores with that of late interaction; `replace` takes three times as long, fifty times a request."""
    return ScoreParts(dense=parts.dense, sparse=parts.sparse, fused=parts.fused, late=late, rerank=parts.rerank)


def _scores(hits: Sequence[Hit]) -> NDArray[np.float64]:
    return np.array([hit.score for hit in hits], dtype=np.float64)
