"""From an admitted question to a context, top to bottom: lookup, embed, search, fuse, fetch, rerank, assemble.

A known result skips all behind the lookup. Search, fuse and fetch of an embedded index never suspend, so the three see
one state of the collection.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from encoders.sparse import AsyncSparseEncoder
from indexers.types import Epoch, SearchQuery
from rerank.types import AsyncReranker
from retrieval.answers.asking import Asked
from retrieval.assembly import assemble
from retrieval.caching.caches import Caches
from retrieval.caching.embeddings import CachedQuery, shape_of
from retrieval.caching.policy import may_keep
from retrieval.caching.results import ResultFlight
from retrieval.clock import Stage
from retrieval.deadline import Deadline
from retrieval.fuse import fuse
from retrieval.settings.caching import CachePolicySettings
from retrieval.stages.embed import DenseEmbedding, DenseQuery, embed_sparse
from retrieval.stages.expand import expand
from retrieval.stages.fetch import join_passages
from retrieval.stages.late import LateInteraction
from retrieval.stages.lookup import Known, Wanted, look_up
from retrieval.stages.rerank import Cascade, Question
from retrieval.stages.tasks import Task
from retrieval.trace import Trace
from retrieval.types import Found, Hit, Mode, RetrieveRequest


@dataclass(frozen=True, slots=True)
class FindingEngines:
    """What finding works with."""

    sparse: AsyncSparseEncoder | None  # of learned term weights; None for BM25
    reranker: AsyncReranker | None
    caches: Caches


class Finder:
    """Finds; holds no state of any request but the work that several share. `policies` gives those in force."""

    def __init__(self, engines: FindingEngines, policies: Callable[[], tuple[CachePolicySettings, ...]]) -> None:
        self._caches = engines.caches
        self._sparse = engines.sparse
        self._embedding = DenseEmbedding()
        late = LateInteraction(engines.caches.token_codes)
        self._cascade = Cascade(late, engines.reranker, engines.caches.pair_scores)
        self._policies = policies
        self._results = ResultFlight()

    async def look_up(self, task: Task, asked: Asked | None, trace: Trace, deadline: Deadline) -> Known:
        """Returns what is known of exactly this question."""
        if not task.shares:
            return Known()
        with trace.clock.stage(Stage.LOOKUP):
            wanted = Wanted(task.request, task.target.scope, shape_of(task.target.encoder), task.result_key, asked)
            known = await look_up(self._caches, wanted, trace)
            if known.found is not None and not self.may_keep(task.request, known.found):
                known = Known(dense=known.dense)  # a policy forbids by now what was kept
            if known.found is not None:
                trace.follow(known.found)
                return known
            found = await self._results.join(task.result_key, deadline)
            if found is not None:
                trace.cache(self._caches.results.name, "flight")
                trace.follow(found)
            return Known(found, known.dense, known.equal)

    async def find(self, task: Task, known: Known, trace: Trace, deadline: Deadline) -> Found:
        """Returns what is known, or finds it; all who ask the same meanwhile get what is found."""
        if known.found is not None:
            return known.found
        if not task.shares:
            return await self._find(task, None, trace, deadline)
        work = partial(self._find, task, known.dense, trace, deadline)
        found, led = await self._results.run(task.result_key, work, deadline)
        if not led:
            trace.follow(found)
        return found

    def may_keep(self, request: RetrieveRequest, found: Found) -> bool:
        """Tells whether the policies let what was found, and what is made of it, be kept."""
        return may_keep(self._policies(), request.tenant, request.collection, found.hits)

    async def close(self) -> None:
        """Gives up the work that requests share."""
        await self._results.close()
        await self._embedding.close()

    async def _find(self, task: Task, dense: DenseQuery | None, trace: Trace, deadline: Deadline) -> Found:
        request, index = task.request, task.target.index
        clock, thresholds = trace.clock, request.thresholds
        with clock.stage(Stage.EMBED):
            if dense is None and thresholds.mode is not Mode.SPARSE:
                dense = await self._embed(task, trace, deadline)
            elif dense is not None:
                trace.query_tokens = dense.token_count
            statistics, sparse = index.statistics, None
            if thresholds.mode is not Mode.DENSE:
                sparse = await embed_sparse(self._sparse, request.query, statistics, trace, deadline)
        with clock.stage(Stage.SEARCH):
            epoch = index.epoch
            query = SearchQuery(dense.encoded.vector if dense else None, sparse, thresholds.candidates)
            async with deadline.bound(Stage.SEARCH):
                candidates = await index.search(query, task.target.scope.filter)
            trace.candidates = len(candidates.chunk_ids)
        with clock.stage(Stage.FUSE):
            keep = max(thresholds.top_k, self._cascade.depth(thresholds, dense))
            fused = fuse(candidates, thresholds, statistics.upper_bound(sparse) if sparse else 0.0, keep)
        with clock.stage(Stage.FETCH):
            async with deadline.bound(Stage.FETCH):
                passages = await index.fetch([candidate.chunk_id for candidate in fused])
            hits = join_passages(fused, passages, task.target.scope.filter, index.definition.fields)
        if thresholds.rerank:
            with clock.stage(Stage.RERANK):
                question = Question(request, dense, task.target.encoder, index, task.target.scope)
                hits = await self._cascade.rerank(question, hits, trace, deadline)
        with clock.stage(Stage.ASSEMBLE):
            hits = hits[: thresholds.top_k]
            if thresholds.expansion is not None:
                async with deadline.bound(Stage.ASSEMBLE):
                    hits = await expand(index, hits, thresholds.expansion, task.counter)
            found = _assembled(task, hits, epoch, dense, trace, deadline)
        self._keep(task, found)
        return found

    async def _embed(self, task: Task, trace: Trace, deadline: Deadline) -> DenseQuery:
        query, scope, encoder = task.request.query, task.target.scope, task.target.encoder
        key = scope.embedding_key(query)
        dense = await self._embedding.embed(encoder, query, key if task.shares else None, trace, deadline)
        trace.query_tokens, trace.query_truncated = dense.token_count, dense.truncated
        if dense.truncated:
            trace.degrade("query_truncated")
        elif task.shares:
            self._caches.embeddings.put(key, CachedQuery(dense.encoded, dense.token_count))
        return dense

    def _keep(self, task: Task, found: Found) -> None:
        request = task.request
        current = task.target.scope.epoch == found.epoch  # a write may have come between admission and search
        stores = task.shares and not request.cache_control.no_store
        if stores and current and not found.degraded and self.may_keep(request, found):
            self._caches.results.put(task.result_key, found)


def _assembled(
    task: Task, hits: list[Hit], epoch: Epoch, dense: DenseQuery | None, trace: Trace, deadline: Deadline
) -> Found:
    thresholds = task.request.thresholds
    budget, least, bounds = task.context_tokens, thresholds.min_score, thresholds.passages
    context = assemble(hits, budget, task.counter, thresholds.duplicate_overlap, least, bounds)
    return Found(
        hits=tuple(hit for hit in hits if hit.score >= thresholds.min_score),
        context=context,
        epoch=epoch,
        dense=dense.encoded if dense and not dense.truncated else None,
        query_tokens=trace.query_tokens,
        query_truncated=trace.query_truncated,
        candidates=trace.candidates,
        degraded=trace.shaping,
        deadline_ns=deadline.at_ns,
        made_at_s=time.time(),
    )
