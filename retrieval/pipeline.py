"""The request path, top to bottom: every stage of a request is one `with` block here, in the order in which it runs.

Retrieve: admit, lookup, embed, search, fuse, fetch, rerank, assemble. Generate: the same, then match, generate, verify.
A known result skips all from embed to assemble, and a known answer that still holds skips generate and verify. Search,
fuse and fetch of an embedded index never suspend, so the three see one state of the collection.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from functools import partial

from encoders.sparse import AsyncSparseEncoder
from encoders.types import AsyncDenseEncoder
from indexers.index import Catalog
from indexers.types import Epoch, SearchQuery
from rerank.types import AsyncReranker
from retrieval.admission import Admission
from retrieval.answers.asking import Asked
from retrieval.assembly import PassageCounter, assemble
from retrieval.caching.caches import Caches
from retrieval.caching.embeddings import CachedQuery
from retrieval.caching.policy import may_keep
from retrieval.caching.results import ResultFlight
from retrieval.clock import Stage, StageClock
from retrieval.deadline import Deadline
from retrieval.errors import BackendUnknown, NotCached
from retrieval.fuse import fuse
from retrieval.generation.answering import Ended
from retrieval.generation.backend import Backend
from retrieval.live import LiveSettings
from retrieval.scope import ModelRevisions
from retrieval.stages.admit import Gate
from retrieval.stages.answer import Writer, Writing
from retrieval.stages.embed import DenseEmbedding, DenseQuery, embed_sparse
from retrieval.stages.fetch import join_passages
from retrieval.stages.late import LateInteraction
from retrieval.stages.lookup import Known, Wanted, look_up
from retrieval.stages.rerank import Cascade, Question
from retrieval.stages.tasks import Task, answer_of, context_budget, task_of
from retrieval.trace import Trace
from retrieval.types import (
    Completed,
    Delta,
    FinishReason,
    Found,
    GenerateEvent,
    GenerateRequest,
    Hit,
    Mode,
    Retrieved,
    RetrieveRequest,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Engines:
    """What the pipeline works with; built by the composition root."""

    catalog: Catalog
    encoder: AsyncDenseEncoder
    caches: Caches
    reranker: AsyncReranker | None
    counter: PassageCounter
    backends: Mapping[str, Backend]
    sparse: AsyncSparseEncoder | None = None  # of learned term weights; None for BM25

    @property
    def models(self) -> ModelRevisions:
        """The models whose output depends on what is asked."""
        sparse, reranker = self.sparse, self.reranker
        return ModelRevisions(
            dense=f"{self.encoder.model_id}@{self.encoder.revision}",
            sparse=f"{sparse.model_id}@{sparse.revision}" if sparse else "",
            cross_encoder=f"{reranker.model_id}@{reranker.revision}" if reranker else "",
        )


class Pipeline:
    """Serves requests; holds no state of any of them but the work that several share."""

    def __init__(self, engines: Engines, admission: Admission, live: LiveSettings) -> None:
        self._engines = engines
        self._caches = engines.caches
        self._gate = Gate(admission, engines.catalog, engines.models)
        self._embedding = DenseEmbedding(engines.encoder)
        late = LateInteraction(engines.encoder, engines.caches.token_codes)
        self._cascade = Cascade(late, engines.reranker, engines.caches.pair_scores)
        self._live = live
        self._results = ResultFlight()
        self._writer = Writer(engines.caches.answers, lambda: live.current.generation)

    async def retrieve(self, request: RetrieveRequest, clock: StageClock, deadline: Deadline) -> Retrieved:
        """Finds the passages that answer a question, and assembles them.

        Raises: every error of the trees of encoders, indexers and retrieval that a stage names.
        """
        trace = Trace(clock)
        async with self._gate.admitted(request, trace, deadline) as target:
            task = task_of(request, target, request.thresholds.context_tokens, self._engines.counter)
            known = await self._look_up(task, None, trace, deadline)
            if known.found is None and request.cache_control.only_if_cached:
                raise NotCached("result")
            found = known.found or await self._find_once(task, known, trace, deadline)
            return _retrieved(request, found, trace)

    async def generate(
        self, request: GenerateRequest, clock: StageClock, deadline: Deadline
    ) -> AsyncGenerator[GenerateEvent, None]:
        """Yields what was retrieved, then the pieces of the answer, then how it ended.

        Raises: what `retrieve` raises, and BackendError.
        """
        trace = Trace(clock)
        backend = self._backend(request.backend)
        settings = self._live.current.generation
        context_tokens = context_budget(request, backend, settings.instructions)
        async with self._gate.admitted(request.retrieve, trace, deadline) as target:
            task = task_of(request.retrieve, target, context_tokens, backend.counter)
            asked = answer_of(request, task, backend, settings) if self._caches.answers.enabled else None
            known = await self._look_up(task, asked, trace, deadline)
            found = known.found or await self._find_once(task, known, trace, deadline)
            if not self._may_keep(request.retrieve, found):
                asked = None
            with clock.stage(Stage.MATCH):
                match = known.match or self._caches.answers.gates.match(asked, found, known.equal)
            if match.replay is None and request.retrieve.cache_control.only_if_cached:
                raise NotCached("answer")
            yield _retrieved(request.retrieve, found, trace)
            writing = Writing(request, found, match, backend, asked)
            answer = self._replay(writing, trace) if match.replay else self._answer(writing, trace, deadline)
            async with aclosing(answer) as events:
                async for event in events:
                    yield event

    async def close(self) -> None:
        """Gives up the work that requests share, and the answers that are made to compare."""
        await self._writer.close()
        await self._results.close()
        await self._embedding.close()

    async def _look_up(self, task: Task, asked: Asked | None, trace: Trace, deadline: Deadline) -> Known:
        if not task.shares:
            return Known()
        with trace.clock.stage(Stage.LOOKUP):
            wanted = Wanted(task.request, task.target.scope, task.result_key, asked)
            known = await look_up(self._caches, wanted, trace)
            if known.found is not None and not self._may_keep(task.request, known.found):
                known = Known(dense=known.dense)  # a policy forbids by now what was kept
            if known.found is not None:
                trace.follow(known.found)
                return known
            found = await self._results.join(task.result_key, deadline)
            if found is not None:
                trace.cache(self._caches.results.name, "flight")
                trace.follow(found)
            return Known(found, known.dense, known.equal)

    async def _find_once(self, task: Task, known: Known, trace: Trace, deadline: Deadline) -> Found:
        """Finds what is asked; all who ask the same meanwhile get what is found."""
        if not task.shares:
            return await self._find(task, None, trace, deadline)
        work = partial(self._find, task, known.dense, trace, deadline)
        found, led = await self._results.run(task.result_key, work, deadline)
        if not led:
            trace.follow(found)
        return found

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
                sparse = await embed_sparse(self._engines.sparse, request.query, statistics, trace, deadline)
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
                question = Question(request, dense, index, task.target.scope)
                hits = await self._cascade.rerank(question, hits, trace, deadline)
        with clock.stage(Stage.ASSEMBLE):
            found = self._assemble(task, hits[: thresholds.top_k], epoch, dense, trace, deadline)
        self._keep_result(task, found)
        return found

    async def _embed(self, task: Task, trace: Trace, deadline: Deadline) -> DenseQuery:
        query, scope = task.request.query, task.target.scope
        key = scope.embedding_key(query)
        dense = await self._embedding.embed(query, key if task.shares else None, trace, deadline)
        trace.query_tokens, trace.query_truncated = dense.token_count, dense.truncated
        if dense.truncated:
            trace.degrade("query_truncated")
        elif task.shares:
            self._caches.embeddings.put(key, CachedQuery(dense.encoded, dense.token_count))
        return dense

    def _assemble(
        self, task: Task, hits: list[Hit], epoch: Epoch, dense: DenseQuery | None, trace: Trace, deadline: Deadline
    ) -> Found:
        thresholds = task.request.thresholds
        context = assemble(hits, task.context_tokens, task.counter, thresholds.duplicate_overlap, thresholds.min_score)
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

    async def _answer(self, writing: Writing, trace: Trace, deadline: Deadline) -> AsyncGenerator[GenerateEvent, None]:
        backend, report = writing.backend, writing.match.report
        if not writing.found.context.citations:
            yield Completed(FinishReason.NO_EVIDENCE, Usage(), (), 0, trace.ledger(), backend.name, "", report)
            return
        ended: Ended | None = None
        with trace.clock.stage(Stage.GENERATE):
            async with self._writer.stream(writing, deadline) as pieces:
                async for piece in deadline.iterate(Stage.GENERATE, pieces):
                    if isinstance(piece, Ended):
                        ended = piece
                    else:
                        trace.first_delta_ns = trace.first_delta_ns or trace.clock.elapsed_ns()
                        yield piece
        assert ended is not None  # a stream without its end raises
        with trace.clock.stage(Stage.VERIFY):
            verified, end = ended.verified, ended.end
            report = self._writer.finish(writing, ended)
        if verified.rest:
            yield Delta(verified.rest)
        told = (verified.citations, verified.unknown_count, trace.ledger(), backend.name, end.model, report)
        yield Completed(end.finish_reason, end.usage, *told)

    async def _replay(self, writing: Writing, trace: Trace) -> AsyncGenerator[GenerateEvent, None]:
        """Streams an answer that was made before; nothing was read or written by a backend for it."""
        replay, kept = writing.match.replay, writing.match.kept
        assert replay is not None
        assert kept is not None
        trace.first_delta_ns = trace.clock.elapsed_ns()
        for text in replay.pieces():
            yield Delta(text)
        report = self._writer.compare_later(writing)
        answer = kept.answer
        told = (replay.citations, 0, trace.ledger(), answer.backend, answer.model, report)
        yield Completed(FinishReason.STOP, Usage(), *told)

    def _keep_result(self, task: Task, found: Found) -> None:
        request = task.request
        current = task.target.scope.epoch == found.epoch  # a write may have come between admission and search
        stores = task.shares and not request.cache_control.no_store
        if stores and current and not found.degraded and self._may_keep(request, found):
            self._caches.results.put(task.result_key, found)

    def _may_keep(self, request: RetrieveRequest, found: Found) -> bool:
        return may_keep(self._live.current.cache.policies, request.tenant, request.collection, found.hits)

    def _backend(self, name: str) -> Backend:
        backend = self._engines.backends.get(name)
        if backend is None:
            raise BackendUnknown(name, tuple(self._engines.backends))
        return backend


def _retrieved(request: RetrieveRequest, found: Found, trace: Trace) -> Retrieved:
    return Retrieved(request.request_id, found.hits, found.context, trace.ledger(), found.epoch)
