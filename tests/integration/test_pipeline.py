"""The request path with its real parts: bundled encoder, embedded index, extractive backend, in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from encoders.types import WorkClass
from indexers.errors import CollectionNotFound, FilterEmpty, UnknownField
from indexers.filters import Filter, MatchAny
from indexers.types import CollectionKey, Document, FieldType
from rerank.errors import Reason, RerankIncomplete
from rerank.types import AsyncReranker
from retrieval.clock import Stage, StageClock
from retrieval.deadline import Deadline
from retrieval.dispatch.open import dispatcher_over, open_dispatcher
from retrieval.errors import BackendCut, BackendUnknown, DeadlineExceeded, Overloaded
from retrieval.live import LiveSettings
from retrieval.pipeline import Pipeline
from retrieval.server.app import App, build
from retrieval.settings.generation import BackendSettings, GenerationSettings, QueueSettings
from retrieval.settings.load import Loaded, load_settings
from retrieval.speech import BackendEnd, Delta, FinishReason, GenerationParams, Usage
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Completed, GenerateEvent, GenerateRequest, Mode, Prompt, Retrieved, RetrieveRequest
from tests.fakes.rerankers import ScriptedReranker

TEXTS = {
    "valve": ("Valve 7", "Valve 7 is tightened to 40 newton metres. Use a torque wrench.", "en"),
    "pump": ("Pump seal", "The pump seal is replaced every two years. Order part K16 in advance.", "en"),
    "soup": ("Soup", "Tomato soup is made of tomatoes, onions and a little salt.", "en"),
    "suppe": ("Suppe", "Tomatensuppe wird aus Tomaten gekocht.", "de"),
}


@dataclass(frozen=True, slots=True)
class Setup:
    """A built application with four documents of the tenant `acme` in `docs`."""

    app: App
    live: LiveSettings


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Setup]:
    """Builds the application on an empty folder and indexes the documents."""

    def load() -> Loaded:
        return load_settings(None, {}, {"data.folder": str(folder), "server.port": 0})

    live = LiveSettings(load(), load)
    async with build(live) as app:
        index = await app.engines.catalog.create(CollectionKey("acme", "docs"), {"lang": FieldType.KEYWORD}, "")
        await app.indexer_of(index).upsert(
            [Document(name, title, text, metadata={"lang": lang}) for name, (title, text, lang) in TEXTS.items()],
            WorkClass.BULK,
        )
        yield Setup(app, live)


@pytest.fixture
async def setup(tmp_path: Path) -> AsyncIterator[Setup]:
    """An application for one test."""
    async with opened(tmp_path / "data") as one:
        yield one


def request(setup: Setup, query: str, filter: Filter | None = None, **asked: object) -> RetrieveRequest:
    """Returns a checked request of the tenant `acme`."""
    thresholds = resolve(setup.live.current, Overrides(**asked))  # type: ignore[arg-type]
    return RetrieveRequest("r1", "acme", "docs", query, filter, thresholds)


async def retrieve(setup: Setup, asked: RetrieveRequest, seconds: float = 10.0) -> Retrieved:
    """Runs one Retrieve."""
    return await setup.app.pipeline.retrieve(asked, StageClock(), Deadline.after(seconds))


async def generate(pipeline: Pipeline, asked: RetrieveRequest, backend: str = "extractive") -> list[GenerateEvent]:
    """Runs one Generate to its end."""
    wanted = GenerateRequest(asked, backend, max_output_tokens=200, temperature=0.0)
    return [event async for event in pipeline.generate(wanted, StageClock(), Deadline.after(10))]


async def test_pipeline_finds_the_passage_and_accounts_for_the_time(setup: Setup) -> None:
    """The best hit answers the question, its scores are its own, and the stages sum to the whole."""
    found = await retrieve(setup, request(setup, "How tight is valve 7?"))
    assert found.hits[0].passage.document_id == "valve"
    assert [hit.score for hit in found.hits] == sorted((hit.score for hit in found.hits), reverse=True)
    for hit in found.hits:
        _, text, _ = TEXTS[hit.passage.document_id]
        assert text[hit.passage.start : hit.passage.end] == hit.passage.text
    stages = [cost.stage for cost in found.ledger.stages]
    assert stages == [
        Stage.ADMIT, Stage.LOOKUP, Stage.EMBED, Stage.SEARCH, Stage.FUSE, Stage.FETCH, Stage.RERANK, Stage.ASSEMBLE,
        Stage.OTHER,
    ]  # fmt: skip
    assert sum(cost.wall_ns for cost in found.ledger.stages) == found.ledger.total_ns
    assert found.ledger.query_tokens > 0
    assert not found.ledger.degraded


def uses(retrieved: Retrieved) -> dict[str, str]:
    """Returns where each cache that was asked had its value."""
    return {use.cache: use.tier for use in retrieved.ledger.caches}


async def test_pipeline_same_request_takes_its_result_from_the_cache(setup: Setup) -> None:
    """Nothing is searched again until something is written; then everything is."""
    first = await retrieve(setup, request(setup, "How tight is valve 7?"))
    again = await retrieve(setup, request(setup, "How tight is valve 7?"))
    assert uses(again) == {"results": "memory"}
    assert again.hits == first.hits
    assert again.context == first.context
    assert [cost.stage for cost in again.ledger.stages] == [Stage.ADMIT, Stage.LOOKUP, Stage.OTHER]
    assert (again.ledger.query_tokens, again.ledger.candidates) == (first.ledger.query_tokens, first.ledger.candidates)
    index = await setup.app.engines.catalog.open(CollectionKey("acme", "docs"))
    await index.delete(["soup"])
    moved = await retrieve(setup, request(setup, "How tight is valve 7?"))
    assert uses(moved) == {"results": "", "query_embeddings": "memory"}
    assert moved.epoch > again.epoch


async def test_pipeline_second_time_takes_the_vector_from_the_cache(setup: Setup) -> None:
    """An equal query is not encoded again, and gives the same hits; `cache: false` encodes it."""
    first = await retrieve(setup, request(setup, "How tight is valve 7?"))
    again = await retrieve(setup, request(setup, "How tight is valve 7?", context_tokens=1000))
    fresh = await retrieve(setup, request(setup, "How tight is valve 7?", cache=False))
    assert uses(first) == {"results": "", "query_embeddings": ""}
    assert uses(again) == {"results": "", "query_embeddings": "memory"}
    assert fresh.ledger.caches == ()
    assert [hit.score for hit in first.hits] == pytest.approx([hit.score for hit in again.hits])
    assert again.ledger.query_tokens == first.ledger.query_tokens


@pytest.mark.parametrize("mode", list(Mode))
async def test_pipeline_filter_holds_in_every_mode(setup: Setup, mode: Mode) -> None:
    """Only what passes the filter is served, whichever branch found it (case RET-02)."""
    german = Filter(must=(MatchAny("lang", ("de",)),))
    found = await retrieve(setup, request(setup, "Tomatensuppe", german, mode=mode))
    assert {hit.passage.document_id for hit in found.hits} == {"suppe"}


async def test_pipeline_no_match_is_empty_and_an_empty_filter_is_refused(setup: Setup) -> None:
    """Absent, empty and no-match are three different things."""
    nothing = Filter(must=(MatchAny("lang", ("fr",)),))
    assert (await retrieve(setup, request(setup, "soup", nothing))).hits == ()
    with pytest.raises(FilterEmpty):
        await retrieve(setup, request(setup, "soup", Filter()))
    with pytest.raises(UnknownField):
        await retrieve(setup, request(setup, "soup", Filter(must=(MatchAny("language", ("de",)),))))


async def test_pipeline_other_tenants_collection_does_not_exist(setup: Setup) -> None:
    """The same name under another tenant is not found, and no search is made."""
    asked = replace(request(setup, "valve"), tenant="other")
    with pytest.raises(CollectionNotFound):
        await retrieve(setup, asked)


async def test_pipeline_min_score_is_inclusive_and_listed(setup: Setup) -> None:
    """A hit at the threshold stays (case VEC-05); one below is left out and named as dropped."""
    found = await retrieve(setup, request(setup, "How tight is valve 7?"))
    second = found.hits[1].score
    cut = await retrieve(setup, request(setup, "How tight is valve 7?", min_score=second))
    assert [hit.passage.chunk_id for hit in cut.hits] == [hit.passage.chunk_id for hit in found.hits[:2]]
    assert len(cut.context.dropped) >= len(found.hits) - 2


async def test_pipeline_deadline_that_has_passed_names_its_stage(setup: Setup) -> None:
    """No time left: a typed error, at once, and the next request is fine."""
    with pytest.raises(DeadlineExceeded):
        await retrieve(setup, request(setup, "valve"), seconds=-1)
    assert (await retrieve(setup, request(setup, "valve"))).hits


async def test_pipeline_query_of_stop_words_still_finds_by_meaning(setup: Setup) -> None:
    """A query without any BM25 term is no error in any mode."""
    assert (await retrieve(setup, request(setup, "what is it about?"))).hits
    assert (await retrieve(setup, request(setup, "what is it?", mode=Mode.SPARSE))).hits == ()


async def test_pipeline_long_query_is_flagged_and_not_cached(setup: Setup) -> None:
    """A truncated query says so and never meets another one in the cache (case SEM-03)."""
    long = "valve " * 600
    for _ in range(2):
        found = await retrieve(setup, request(setup, long))
        assert found.ledger.query_truncated
        assert "query_truncated" in found.ledger.degraded
        assert uses(found) == {"results": "", "query_embeddings": ""}


async def test_pipeline_identical_requests_run_once(setup: Setup) -> None:
    """200 callers at once, the first of which leaves: one is searched for all, and all others are answered."""
    asked = request(setup, "How tight is valve 7?")
    callers = [asyncio.create_task(retrieve(setup, asked)) for _ in range(60)]
    await asyncio.sleep(0)
    callers[0].cancel()
    found = await asyncio.gather(*callers, return_exceptions=True)
    assert isinstance(found[0], asyncio.CancelledError)
    answered = [one for one in found[1:] if isinstance(one, Retrieved)]
    assert len(answered) == 59
    assert sum(any(cost.stage is Stage.SEARCH for cost in one.ledger.stages) for one in answered) <= 1
    assert all(one.hits == answered[0].hits for one in answered)


async def test_pipeline_write_is_seen_by_the_next_request(setup: Setup) -> None:
    """An acknowledged delete is gone and an acknowledged change is served, with a later epoch."""
    index = await setup.app.engines.catalog.open(CollectionKey("acme", "docs"))
    before = await retrieve(setup, request(setup, "How tight is valve 7?"))
    await setup.app.indexer_of(index).upsert(
        [Document("valve", "Valve 7", "Valve 7 is tightened to 55 newton metres.", metadata={"lang": "en"})],
        WorkClass.BULK,
    )
    changed = await retrieve(setup, request(setup, "How tight is valve 7?"))
    assert "55" in changed.hits[0].passage.text
    assert changed.epoch > before.epoch
    await index.delete(["valve"])
    gone = await retrieve(setup, request(setup, "How tight is valve 7?"))
    assert "valve" not in {hit.passage.document_id for hit in gone.hits}


async def test_generate_gives_retrieved_then_deltas_then_completed(setup: Setup) -> None:
    """Events come in order; the answer is made of the sources and cites them by exact offsets."""
    events = await generate(setup.app.pipeline, request(setup, "How tight is valve 7?"))
    assert isinstance(events[0], Retrieved)
    assert isinstance(events[-1], Completed)
    assert all(isinstance(event, Delta) for event in events[1:-1])
    answer = "".join(event.text for event in events[1:-1] if isinstance(event, Delta))
    assert "40 newton metres" in answer
    end = events[-1]
    assert end.finish_reason is FinishReason.STOP
    assert end.citations
    for citation in end.citations:
        assert answer[citation.start : citation.end] == f"[{citation.number}]"
    assert end.ledger.first_delta_ns > 0
    assert sum(cost.wall_ns for cost in end.ledger.stages) == end.ledger.total_ns


async def test_generate_without_evidence_says_so_and_asks_no_model(setup: Setup) -> None:
    """Nothing found: a clear finish reason, no text, no GENERATE stage."""
    asked = request(setup, "valve", Filter(must=(MatchAny("lang", ("fr",)),)))
    events = await generate(setup.app.pipeline, asked)
    assert [type(event) for event in events] == [Retrieved, Completed]
    end = events[-1]
    assert isinstance(end, Completed)
    assert end.finish_reason is FinishReason.NO_EVIDENCE
    assert Stage.GENERATE not in {cost.stage for cost in end.ledger.stages}


async def test_generate_unknown_backend_is_refused_before_any_work(setup: Setup) -> None:
    """The error names the backends that are there."""
    with pytest.raises(BackendUnknown) as refused:
        await generate(setup.app.pipeline, request(setup, "valve"), backend="gpt")
    assert "extractive" in refused.value.known


class CutBackend:
    """A backend whose stream ends without an end."""

    name = "cut"
    model = "cut"
    context_window_tokens = 4096

    def __init__(self, setup: Setup) -> None:
        self.counter = setup.app.engines.counter
        self.closed = asyncio.Event()

    async def stream(self, prompt: Prompt, params: GenerationParams) -> AsyncIterator[Delta | BackendEnd]:
        try:
            yield Delta("Turn the key")
        finally:
            self.closed.set()

    async def close(self) -> None:
        """Has nothing to close."""


def with_backend(setup: Setup, backend: CutBackend) -> Pipeline:
    """Returns a pipeline that has one more backend."""
    engines = replace(setup.app.engines, dispatcher=dispatcher_over(backend))  # type: ignore[arg-type]
    return Pipeline(engines, setup.app.pipeline._gate.admission, setup.live)


async def test_generate_stream_without_an_end_is_an_error(setup: Setup) -> None:
    """A cut stream is never a full answer, and the permit is given back."""
    backend = CutBackend(setup)
    pipeline = with_backend(setup, backend)
    with pytest.raises(BackendCut) as cut:
        await generate(pipeline, request(setup, "valve"), backend="cut")
    assert cut.value.received_chars == len("Turn the key")
    assert setup.app.pipeline._gate.admission.running == 0


async def test_generate_client_that_leaves_closes_the_backend(setup: Setup) -> None:
    """Closing the events in the middle closes the backend's stream and gives the permit back."""
    backend = CutBackend(setup)
    pipeline = with_backend(setup, backend)
    wanted = GenerateRequest(request(setup, "valve"), "cut", max_output_tokens=20, temperature=0.0)
    events = pipeline.generate(wanted, StageClock(), Deadline.after(10))
    assert isinstance(await anext(events), Retrieved)
    assert isinstance(await anext(events), Delta)
    await events.aclose()
    await backend.closed.wait()
    assert setup.app.pipeline._gate.admission.running == 0


class HeldBackend(CutBackend):
    """A backend that answers when the test lets it."""

    name = "held"

    def __init__(self, setup: Setup) -> None:
        super().__init__(setup)
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()

    async def stream(self, prompt: Prompt, params: GenerationParams) -> AsyncIterator[Delta | BackendEnd]:
        self.begun.set()
        await self.gate.wait()
        yield Delta("Turn the key.")
        yield BackendEnd(FinishReason.STOP, Usage(), "held")


async def test_generate_that_waits_too_long_for_its_backend_is_refused(setup: Setup) -> None:
    """A stream that does not get its turn ends with an error that says when to come back, never empty (case GEN-13)."""
    backend = HeldBackend(setup)
    settings = GenerationSettings(
        default_backend="held",
        backends=(BackendSettings(name="held", kind="extractive", max_concurrent=1),),
        queue=QueueSettings(max_wait_ms=20),
    )
    dispatcher = open_dispatcher({"held": [backend]}, lambda: settings)  # type: ignore[list-item]
    pipeline = Pipeline(
        replace(setup.app.engines, dispatcher=dispatcher), setup.app.pipeline._gate.admission, setup.live
    )
    first = asyncio.create_task(generate(pipeline, request(setup, "valve"), backend="held"))
    await backend.begun.wait()
    with pytest.raises(Overloaded) as refused:
        await generate(pipeline, request(setup, "Which valve?"), backend="held")
    assert refused.value.retry_after_ms > 0
    backend.gate.set()
    end = (await first)[-1]
    assert isinstance(end, Completed)
    assert end.finish_reason is FinishReason.STOP


async def test_generate_who_has_more_time_goes_on_when_the_first_one_is_refused(setup: Setup) -> None:
    """Two ask the same: the first has no time to wait for the backend, the second has, and gets the answer."""
    backend = HeldBackend(setup)
    settings = GenerationSettings(
        default_backend="held", backends=(BackendSettings(name="held", kind="extractive", max_concurrent=1),)
    )
    dispatcher = open_dispatcher({"held": [backend]}, lambda: settings)  # type: ignore[list-item]
    engines = replace(setup.app.engines, dispatcher=dispatcher)
    pipeline = Pipeline(engines, setup.app.pipeline._gate.admission, setup.live)
    holds = asyncio.create_task(generate(pipeline, request(setup, "valve"), backend="held"))
    await backend.begun.wait()

    async def ask(seconds: float) -> Completed:
        wanted = GenerateRequest(request(setup, "Which valve?"), "held", max_output_tokens=20, temperature=0.0)
        events = [event async for event in pipeline.generate(wanted, StageClock(), Deadline.after(seconds))]
        assert isinstance(events[-1], Completed)
        return events[-1]

    hasty, patient = asyncio.create_task(ask(0.2)), asyncio.create_task(ask(10.0))
    with pytest.raises((Overloaded, DeadlineExceeded)):
        await hasty
    assert not patient.done()
    backend.gate.set()
    assert (await patient).finish_reason is FinishReason.STOP
    await holds


def reranking(setup: Setup, reranker: AsyncReranker) -> tuple[Pipeline, RetrieveRequest]:
    """Returns a pipeline with the reranker, and a request that uses it however certain the first stages are."""
    pipeline = Pipeline(replace(setup.app.engines, reranker=reranker), setup.app.pipeline._gate.admission, setup.live)
    asked = request(setup, "How tight is valve 7?")
    return pipeline, replace(asked, thresholds=replace(asked.thresholds, rerank=True, gate_margin=0.0))


async def test_rerank_scores_stay_with_their_passages(setup: Setup) -> None:
    """The cross-encoder's opinion moves the passage it is about (case RER-01)."""
    pipeline, asked = reranking(setup, ScriptedReranker(lambda text: 20.0 if "soup" in text else -20.0))
    found = await pipeline.retrieve(asked, StageClock(), Deadline.after(10))
    assert found.hits[0].passage.document_id == "soup"
    assert found.hits[0].parts.rerank == pytest.approx(1.0, abs=1e-3)
    assert found.ledger.rerank is not None
    assert found.ledger.rerank.stop == "all"


@pytest.mark.parametrize("reason", ["deadline", "unavailable"])
async def test_rerank_failure_keeps_the_whole_order_and_says_so(setup: Setup, reason: Reason) -> None:
    """No invented score stands among real ones (case RER-10)."""
    failing = ScriptedReranker(lambda text: 1.0, failure=RerankIncomplete(reason, 2, 4))
    pipeline, asked = reranking(setup, failing)
    found = await pipeline.retrieve(asked, StageClock(), Deadline.after(10))
    plain = await retrieve(setup, request(setup, "How tight is valve 7?"))
    assert [hit.passage.chunk_id for hit in found.hits] == [hit.passage.chunk_id for hit in plain.hits]
    assert all(hit.parts.rerank is None for hit in found.hits)
    assert found.ledger.degraded == (f"rerank_{reason}",)
    assert found.ledger.rerank is not None
    assert found.ledger.rerank.stop == reason
