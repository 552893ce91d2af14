"""The request path, top to bottom: every stage of a request is one `with` block here, in the order in which it runs.

Retrieve: admit, lookup, embed, search, fuse, fetch, rerank, assemble. Generate: the same, then generate and verify.
Search, fuse and fetch of an embedded index never suspend, so the three see one state of the collection.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass

from encoders.sparse import AsyncSparseEncoder
from encoders.types import AsyncDenseEncoder
from indexers.filters import Filter
from indexers.index import Catalog, Index
from indexers.schema import coerce_filter
from indexers.types import CollectionKey, Epoch, SearchQuery
from rerank.score_cache import ScoreCache
from rerank.types import AsyncReranker
from retrieval.admission import Admission
from retrieval.assembly import PassageCounter, assemble, generation_budget
from retrieval.caching.embeddings import QueryEmbeddings
from retrieval.caching.token_codes import TokenCodes
from retrieval.citations import CitationParser
from retrieval.clock import Stage, StageClock
from retrieval.deadline import Deadline
from retrieval.errors import BackendCut, BackendUnknown
from retrieval.fuse import fuse
from retrieval.generation.backend import Backend
from retrieval.live import LiveSettings
from retrieval.scope import Scope
from retrieval.stages.embed import DenseQuery, embed_dense, embed_sparse
from retrieval.stages.fetch import join_passages
from retrieval.stages.late import LateInteraction
from retrieval.stages.rerank import Cascade, Question
from retrieval.trace import Trace
from retrieval.types import (
    BackendEnd,
    Completed,
    Delta,
    FinishReason,
    GenerateEvent,
    GenerateRequest,
    GenerationParams,
    Hit,
    Mode,
    Prompt,
    Retrieved,
    RetrieveRequest,
    Usage,
)


@dataclass(frozen=True, slots=True)
class Engines:
    """What the pipeline works with; built by the composition root."""

    catalog: Catalog
    encoder: AsyncDenseEncoder
    embeddings: QueryEmbeddings
    token_codes: TokenCodes
    reranker: AsyncReranker | None
    pair_scores: ScoreCache
    counter: PassageCounter
    backends: Mapping[str, Backend]
    sparse: AsyncSparseEncoder | None = None  # of learned term weights; None for BM25


@dataclass(frozen=True, slots=True)
class _Target:
    """What an admitted request reads."""

    index: Index
    scope: Scope
    filter: Filter | None


class Pipeline:
    """Serves requests; holds no state of any of them."""

    def __init__(self, engines: Engines, admission: Admission, live: LiveSettings) -> None:
        self._engines = engines
        late = LateInteraction(engines.encoder, engines.token_codes)
        self._cascade = Cascade(late, engines.reranker, engines.pair_scores)
        self._admission = admission
        self._live = live

    async def retrieve(self, request: RetrieveRequest, clock: StageClock, deadline: Deadline) -> Retrieved:
        """Finds the passages that answer a question, and assembles them.

        Raises: every error of the trees of encoders, indexers and retrieval that a stage names.
        """
        trace = Trace(clock)
        async with self._admitted(request, trace, deadline) as target:
            hits, epoch = await self._find(request, target, trace, deadline)
            return self._assemble(request, hits, epoch, request.thresholds.context_tokens, trace)

    async def generate(
        self, request: GenerateRequest, clock: StageClock, deadline: Deadline
    ) -> AsyncGenerator[GenerateEvent, None]:
        """Yields what was retrieved, then the pieces of the answer, then how it ended.

        Raises: what `retrieve` raises, and BackendError.
        """
        trace = Trace(clock)
        backend = self._backend(request.backend)
        context_tokens = self._context_budget(request, backend)
        async with self._admitted(request.retrieve, trace, deadline) as target:
            hits, epoch = await self._find(request.retrieve, target, trace, deadline)
            retrieved = self._assemble(request.retrieve, hits, epoch, context_tokens, trace, backend.counter)
            yield retrieved
            async with aclosing(self._answer(request, retrieved, backend, trace, deadline)) as events:
                async for event in events:
                    yield event

    async def _find(
        self, request: RetrieveRequest, target: _Target, trace: Trace, deadline: Deadline
    ) -> tuple[list[Hit], Epoch]:
        clock, thresholds, index = trace.clock, request.thresholds, target.index
        with clock.stage(Stage.LOOKUP):
            dense = self._lookup(request, target.scope, trace)
        with clock.stage(Stage.EMBED):
            if dense is None and thresholds.mode is not Mode.SPARSE:
                dense = await self._embed(request, target.scope, trace, deadline)
            statistics, sparse = index.statistics, None
            if thresholds.mode is not Mode.DENSE:
                sparse = await embed_sparse(self._engines.sparse, request.query, statistics, trace, deadline)
        with clock.stage(Stage.SEARCH):
            epoch = index.epoch
            query = SearchQuery(dense.encoded.vector if dense else None, sparse, thresholds.candidates)
            async with deadline.bound(Stage.SEARCH):
                candidates = await index.search(query, target.filter)
            trace.candidates = len(candidates.chunk_ids)
        with clock.stage(Stage.FUSE):
            keep = max(thresholds.top_k, self._cascade.depth(thresholds, dense))
            fused = fuse(candidates, thresholds, statistics.upper_bound(sparse) if sparse else 0.0, keep)
        with clock.stage(Stage.FETCH):
            async with deadline.bound(Stage.FETCH):
                passages = await index.fetch([candidate.chunk_id for candidate in fused])
            hits = join_passages(fused, passages, target.filter, index.definition.fields)
        if thresholds.rerank:
            with clock.stage(Stage.RERANK):
                question = Question(request, dense, index, target.scope)
                hits = await self._cascade.rerank(question, hits, trace, deadline)
        return hits[: thresholds.top_k], epoch

    async def _answer(
        self, request: GenerateRequest, retrieved: Retrieved, backend: Backend, trace: Trace, deadline: Deadline
    ) -> AsyncGenerator[GenerateEvent, None]:
        if not retrieved.context.citations:
            yield Completed(FinishReason.NO_EVIDENCE, Usage(), (), 0, trace.ledger(), backend.name, "")
            return
        prompt = Prompt(self._live.current.generation.instructions, retrieved.context, request.retrieve.query)
        params = GenerationParams(request.max_output_tokens, request.temperature, deadline.at_ns)
        parser = CitationParser(retrieved.context.citations)
        end: BackendEnd | None = None
        with trace.clock.stage(Stage.GENERATE):
            async with aclosing(backend.stream(prompt, params)) as pieces:
                async for piece in deadline.iterate(Stage.GENERATE, pieces):
                    if isinstance(piece, BackendEnd):
                        end = piece
                    elif text := parser.feed(piece.text):
                        trace.first_delta_ns = trace.first_delta_ns or trace.clock.elapsed_ns()
                        yield Delta(text)
        if end is None:
            raise BackendCut(backend.name, parser.emitted_chars)
        with trace.clock.stage(Stage.VERIFY):
            rest, citations, unknown = parser.finish()
        if rest:
            yield Delta(rest)
        yield Completed(end.finish_reason, end.usage, citations, unknown, trace.ledger(), backend.name, end.model)

    def _lookup(self, request: RetrieveRequest, scope: Scope, trace: Trace) -> DenseQuery | None:
        if request.thresholds.mode is Mode.SPARSE or not request.thresholds.use_cache:
            return None
        cached = self._engines.embeddings.get(scope, request.query)
        trace.cache(self._engines.embeddings.name, cached is not None)
        if cached is None:
            return None
        encoded, trace.query_tokens = cached
        return DenseQuery(encoded, trace.query_tokens, truncated=False)

    async def _embed(self, request: RetrieveRequest, scope: Scope, trace: Trace, deadline: Deadline) -> DenseQuery:
        dense = await embed_dense(self._engines.encoder, request.query, trace, deadline)
        trace.query_tokens, trace.query_truncated = dense.token_count, dense.truncated
        if dense.truncated:
            trace.degrade("query_truncated")
        elif request.thresholds.use_cache:
            self._engines.embeddings.put(scope, request.query, dense.encoded, dense.token_count)
        return dense

    def _assemble(
        self,
        request: RetrieveRequest,
        hits: list[Hit],
        epoch: Epoch,
        context_tokens: int,
        trace: Trace,
        counter: PassageCounter | None = None,
    ) -> Retrieved:
        thresholds = request.thresholds
        with trace.clock.stage(Stage.ASSEMBLE):
            context = assemble(
                hits,
                context_tokens,
                counter or self._engines.counter,
                thresholds.duplicate_overlap,
                thresholds.min_score,
            )
            served = tuple(hit for hit in hits if hit.score >= thresholds.min_score)
        return Retrieved(request.request_id, served, context, trace.ledger(), epoch)

    @asynccontextmanager
    async def _admitted(self, request: RetrieveRequest, trace: Trace, deadline: Deadline) -> AsyncIterator[_Target]:
        async with AsyncExitStack() as held:
            with trace.clock.stage(Stage.ADMIT):
                waited_ns = await self._admission.acquire(deadline)
                held.callback(self._admission.release)
                trace.clock.charge(queue_ns=waited_ns)
                target = await self._open(request, deadline)
            yield target

    async def _open(self, request: RetrieveRequest, deadline: Deadline) -> _Target:
        async with deadline.bound(Stage.ADMIT):
            index = await self._engines.catalog.open(CollectionKey(request.tenant, request.collection))
        coerced = None if request.filter is None else coerce_filter(request.filter, index.definition.fields)
        encoder = self._engines.encoder
        scope = Scope(request.tenant, request.collection, index.epoch, encoder.model_id, encoder.revision)
        return _Target(index, scope, coerced)

    def _backend(self, name: str) -> Backend:
        backend = self._engines.backends.get(name)
        if backend is None:
            raise BackendUnknown(name, tuple(self._engines.backends))
        return backend

    def _context_budget(self, request: GenerateRequest, backend: Backend) -> int:
        return generation_budget(
            backend.context_window_tokens,
            self._live.current.generation.instructions,
            request.retrieve.query,
            request.max_output_tokens,
            backend.counter,
            request.retrieve.thresholds.context_tokens,
        )
