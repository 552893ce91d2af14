"""The request path, top to bottom: every stage of a request is one `with` block, in the order in which it runs.

Retrieve: rewrite, admit, then those of `finding`: lookup, embed, search, fuse, fetch, rerank, assemble. Generate: the
same, then match, route, generate, verify. Only a conversation is rewritten. A known answer that still holds skips
route, generate and verify. The permit is for retrieval alone: answers wait in the queues of their backends.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

from encoders.sparse import AsyncSparseEncoder
from indexers.index import Catalog
from rerank.types import AsyncReranker
from retrieval.admission import Admission
from retrieval.answers.gates import Match
from retrieval.assembly import PassageCounter
from retrieval.caching.caches import Caches
from retrieval.clock import Stage, StageClock
from retrieval.collection_encoders import CollectionEncoders
from retrieval.conversation.rewriting import Rewriter
from retrieval.deadline import Deadline
from retrieval.dispatch.answering import Ended
from retrieval.dispatch.dispatcher import Dispatcher
from retrieval.errors import NotCached
from retrieval.finding import Finder, FindingEngines
from retrieval.live import LiveSettings
from retrieval.reuse import Reuse
from retrieval.route import Priority
from retrieval.routing.asking import Reading
from retrieval.routing.router import Router
from retrieval.scope import ModelRevisions
from retrieval.settings.generation import GenerationSettings
from retrieval.speech import Delta, FinishReason, Usage
from retrieval.stages.admit import Gate
from retrieval.stages.answer import Writer, Writing
from retrieval.stages.ask import Asker, Inquiry
from retrieval.stages.converse import Conversing, conversation_report
from retrieval.stages.tasks import answer_of, task_of
from retrieval.trace import Trace
from retrieval.types import Completed, Explained, Found, GenerateEvent, GenerateRequest, Retrieved, RetrieveRequest


@dataclass(frozen=True, slots=True)
class Engines:
    """What the pipeline works with; built by the composition root."""

    catalog: Catalog
    encoders: CollectionEncoders
    caches: Caches
    reranker: AsyncReranker | None
    counter: PassageCounter
    dispatcher: Dispatcher
    sparse: AsyncSparseEncoder | None = None  # of learned term weights; None for BM25
    give_way: Callable[[], None] = lambda: None  # is told of each request, so that bulk work rests

    @property
    def models(self) -> ModelRevisions:
        """The models whose output depends on what is asked, but for the dense one, which is the collection's."""
        sparse, reranker = self.sparse, self.reranker
        return ModelRevisions(
            sparse=f"{sparse.model_id}@{sparse.revision}" if sparse else "",
            cross_encoder=f"{reranker.model_id}@{reranker.revision}" if reranker else "",
        )


class Pipeline:
    """Serves requests; holds no state of any of them but the work that several share."""

    def __init__(self, engines: Engines, admission: Admission, live: LiveSettings) -> None:
        self._engines = engines
        self._answers = engines.caches.answers
        self._gate = Gate(admission, engines.catalog, engines.encoders, engines.models, engines.give_way)
        parts = FindingEngines(engines.sparse, engines.reranker, engines.caches)
        self._finder = Finder(parts, lambda: live.current.cache.policies)
        self._live = live
        summaries, dispatcher = engines.caches.summaries, engines.dispatcher
        self._router = Router(dispatcher.services, self._generation)
        self._asker = Asker(self._router, dispatcher.services, summaries, self._generation)
        rewriter = Rewriter(lambda: self._generation().conversation)
        self._conversing = Conversing(rewriter, summaries, self._router, dispatcher, self._generation)
        self._writer = Writer(engines.caches.answers, self._router, dispatcher, self._generation)

    async def retrieve(self, request: RetrieveRequest, clock: StageClock, deadline: Deadline) -> Retrieved:
        """Finds the passages that answer a question, and assembles them.

        Raises: every error of the trees of encoders, indexers and retrieval that a stage names.
        """
        trace = Trace(clock)
        reading = Reading(self._engines.counter, request.thresholds.context_tokens)
        backend = self._generation().default_backend
        searched = await self._rewrite(request, backend, Priority.INTERACTIVE, trace, deadline)
        async with self._gate.admitted(searched, trace, deadline) as target:
            task = task_of(searched, target, reading)
            known = await self._finder.look_up(task, None, trace, deadline)
            if known.found is None and request.cache_control.only_if_cached:
                raise NotCached("result")
            found = await self._finder.find(task, known, trace, deadline)
            return _retrieved(request, found, trace)

    async def generate(
        self, request: GenerateRequest, clock: StageClock, deadline: Deadline
    ) -> AsyncGenerator[GenerateEvent, None]:
        """Yields what was retrieved, then the pieces of the answer, then how it ended.

        Raises: what `retrieve` raises, BackendError, and Overloaded.
        """
        trace = Trace(clock)
        inquiry = self._asker.inquire(request, deadline)
        writing = await self._read(inquiry, trace, deadline)
        yield _retrieved(request.retrieve, writing.found, trace, inquiry)
        answer = self._replay(writing, trace) if writing.match.replay else self._answer(writing, trace, deadline)
        async with aclosing(answer) as events:
            async for event in events:
                yield event

    async def explain(self, request: GenerateRequest, clock: StageClock, deadline: Deadline) -> Explained:
        """Returns the route that a question would take now; nothing is generated.

        Raises: what `retrieve` raises, and BackendError.
        """
        trace = Trace(clock)
        inquiry = self._asker.inquire(request, deadline)
        searched = await self._rewrite(request.retrieve, request.backend, None, trace, deadline)
        async with self._gate.admitted(searched, trace, deadline, request.priority) as target:
            task = task_of(searched, target, inquiry.reading)
            known = await self._finder.look_up(task, None, trace, deadline)
            found = await self._finder.find(task, known, trace, deadline)
        with clock.stage(Stage.ROUTE):
            route = self._router.route(inquiry.asking, found)
        return Explained(route.report, found.context.token_count, trace.ledger())

    async def close(self) -> None:
        """Gives up the work that requests share, and what is written beside them."""
        await self._writer.close()
        await self._conversing.close()
        await self._finder.close()

    async def _read(self, inquiry: Inquiry, trace: Trace, deadline: Deadline) -> Writing:
        """Retrieves, and decides whether an earlier answer serves or which backend writes a new one."""
        request, wanted = inquiry.request.retrieve, inquiry.request
        searched = await self._rewrite(request, wanted.backend, wanted.priority, trace, deadline)
        async with self._gate.admitted(searched, trace, deadline, wanted.priority) as target:
            task = task_of(searched, target, inquiry.reading)
            enabled, sentences = self._answers.enabled, self._generation().extractive_sentences
            asked = answer_of(inquiry, task, sentences) if enabled else None
            known = await self._finder.look_up(task, asked, trace, deadline)
            found = await self._finder.find(task, known, trace, deadline)
        if not self._finder.may_keep(request, found):
            asked = None
        with trace.clock.stage(Stage.MATCH):
            match = known.match or self._answers.gates.match(asked, found, known.equal)
        if match.kept is not None and not self._router.permits(inquiry.asking, found, match.kept.answer.backend):
            match = Match(replace(match.report, reuse=Reuse.NONE, reason="rule", shadowed=False))
        if match.replay is None and request.cache_control.only_if_cached:
            raise NotCached("answer")
        route = None
        if match.replay is None or match.report.shadowed:
            with trace.clock.stage(Stage.ROUTE):
                route = self._router.route(inquiry.asking, found)
                trace.route = route.report if match.replay is None else None
        return Writing(inquiry, found, match, asked, route)

    def _generation(self) -> GenerationSettings:
        return self._live.current.generation

    async def _rewrite(
        self, request: RetrieveRequest, backend: str, priority: Priority | None, trace: Trace, deadline: Deadline
    ) -> RetrieveRequest:
        """Before the permit is taken, which is for retrieval and not for waiting for a model."""
        if not request.turns:
            return request
        with trace.clock.stage(Stage.REWRITE):
            return await self._conversing.standalone(request, backend, priority, trace, deadline)

    async def _answer(self, writing: Writing, trace: Trace, deadline: Deadline) -> AsyncGenerator[GenerateEvent, None]:
        report, route = writing.match.report, writing.route
        assert route is not None
        if not writing.found.context.citations:
            backend = route.report.backend
            yield Completed(FinishReason.NO_EVIDENCE, Usage(), (), 0, trace.ledger(), backend, "", report)
            return
        ended: Ended | None = None
        with trace.clock.stage(Stage.GENERATE):
            async with self._writer.stream(writing, deadline) as pieces:
                with deadline.iterating(Stage.GENERATE, pieces) as timely:
                    async for piece in timely:
                        if isinstance(piece, Ended):
                            ended = piece
                        else:
                            trace.first_delta_ns = trace.first_delta_ns or trace.clock.elapsed_ns()
                            yield piece
            assert ended is not None  # a stream without its end raises
            trace.generation = ended.report
            trace.clock.charge(queue_ns=ended.report.queue_ns)
        with trace.clock.stage(Stage.VERIFY):
            verified, end = ended.verified, ended.end
            report = self._writer.finish(writing, ended)
            if ended.stand_in:
                trace.step_down("backend_fallback")
        if verified.rest:
            yield Delta(verified.rest)
        self._conversing.summarise_later(writing.inquiry)
        told = (verified.citations, verified.unknown_count, trace.ledger(), ended.report.backend, end.model, report)
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


def _retrieved(request: RetrieveRequest, found: Found, trace: Trace, inquiry: Inquiry | None = None) -> Retrieved:
    conversation = conversation_report(request, inquiry.history if inquiry else None, trace)
    return Retrieved(request.request_id, found.hits, found.context, trace.ledger(), found.epoch, conversation)
