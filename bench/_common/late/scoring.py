"""How long late interaction takes in service: scoring from stored codes, and the whole stage around it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench._common.engines import Encoders
from bench._common.pipelines import KEY, RequestPath, index_documents, open_request_path
from bench._common.statistics import Quantiles, quantiles
from bench._common.tables import say
from indexers.index import Index
from indexers.types import Document
from retrieval.clock import Stage, StageClock
from retrieval.deadline import Deadline
from retrieval.settings import Settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Retrieved, RetrieveRequest, Thresholds

_PATIENCE_S = 60.0
_CONTEXT_TOKENS = 16  # contexts are not looked at here
_WARM_UP = 20


@dataclass(frozen=True, slots=True)
class Scoring:
    """Times for the questions that had the full number of candidates."""

    chunks: int  # in the collection
    candidates: int  # of a question
    late_scores: Quantiles  # of the index's call alone, reading the codes included
    stage: Quantiles  # of the stage `rerank` in the ledger


async def measure_scoring(
    settings: Settings, encoders: Encoders, documents: Sequence[Document], questions: Sequence[str]
) -> Scoring:
    """Builds a collection of the documents in a temporary folder and asks the questions, one after the other."""
    asked = Overrides(
        top_k=settings.rerank.depth, context_tokens=_CONTEXT_TOKENS, cache=False, rerank=True, min_score=-1.0
    )
    thresholds = resolve(settings, asked)
    async with open_request_path(settings, encoders, encoders.cached) as path:
        index, report = await index_documents(path.catalog, documents, {}, encoders, encoders.cached)
        say(f"{report.counts.written:,} documents, {report.counts.chunks:,} chunks indexed for timing")
        for question in questions[:_WARM_UP]:
            await _time(path, index, encoders, question, thresholds)
        times = [await _time(path, index, encoders, question, thresholds) for question in questions]
    full = [one for one in times if one is not None]
    return Scoring(
        chunks=report.counts.chunks,
        candidates=settings.rerank.depth,
        late_scores=quantiles([alone for alone, _ in full]),
        stage=quantiles([stage for _, stage in full]),
    )


async def _time(
    path: RequestPath, index: Index, encoders: Encoders, question: str, thresholds: Thresholds
) -> tuple[int, int] | None:
    """Returns the nanoseconds of the call and of the stage; None when there were fewer candidates or no tokens."""
    found = await _retrieve(path, question, thresholds)
    report = found.ledger.rerank
    if report is None or report.late.passages < thresholds.rerank_depth:
        return None
    query = (await encoders.cached.encode_query(question, None)).value
    assert query is not None
    assert query.tokens is not None
    passages = [hit.passage for hit in found.hits]
    started = time.perf_counter_ns()
    await index.late_scores(query.tokens, passages)
    return time.perf_counter_ns() - started, found.ledger.wall_ns(Stage.RERANK)


async def _retrieve(path: RequestPath, question: str, thresholds: Thresholds) -> Retrieved:
    request = RetrieveRequest("late", KEY.tenant, KEY.collection, question, None, thresholds)
    return await path.pipeline.retrieve(request, StageClock(), Deadline.after(_PATIENCE_S))
