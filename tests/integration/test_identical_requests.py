"""200 identical requests at once over gRPC: each stage runs once, and whoever leaves takes nothing from the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc.aio
import pytest

from bench._common.consistency.embedded import embedded_catalog
from bench._common.consistency.engines import WordEncoder, passage_counter
from encoders.types import EncodedQuery, Outcome, WorkClass
from headrace.v1 import common_pb2, retrieval_pb2, retrieval_pb2_grpc
from indexers.chunking import Chunker
from indexers.index import Catalog
from indexers.ingest import Indexer
from indexers.options import ShardKind
from indexers.types import Candidates, CollectionKey, Document, SearchQuery
from retrieval.admission import Admission
from retrieval.caching.open import open_caches
from retrieval.caching.shared import NoSharedTier
from retrieval.client import Client, retrieve_request
from retrieval.collection_encoders import OneEncoder
from retrieval.dispatch.open import dispatcher_over
from retrieval.identity import Authenticator
from retrieval.live import LiveSettings
from retrieval.pipeline import Engines, Pipeline
from retrieval.server.draining import Drain
from retrieval.server.interceptor import Guard
from retrieval.server.limits import Limits
from retrieval.server.listening import channel_options, listen_tcp
from retrieval.server.services.retrieval import RetrievalService
from retrieval.settings.load import load_settings
from retrieval.speech import BackendEnd, Delta, FinishReason, GenerationParams, Usage
from retrieval.telemetry.metrics import Metrics
from retrieval.types import Prompt

KEY = CollectionKey("default", "docs")
CALLERS = 200
QUESTION = "How tight is the valve?"
PIECES = ("It is tightened ", "to 40 newton ", "metres [1", "].")
PREFIX = 2  # pieces that are sent before anybody late comes
PATIENCE_S = 30.0


class HeldEncoder(WordEncoder):
    """Encodes questions when it is let, and counts them."""

    def __init__(self) -> None:
        self.queries = 0
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()

    async def encode_query(self, text: str, deadline_ns: int | None) -> Outcome[EncodedQuery]:
        self.queries += 1
        self.begun.set()
        await self.gate.wait()
        return await super().encode_query(text, deadline_ns)


class ScriptedBackend:
    """Gives one piece for each permit, counts its streams, and tells when one was closed."""

    name = "scripted"
    model = "scripted"
    context_window_tokens = 4096

    def __init__(self) -> None:
        self.counter = passage_counter()
        self.streams = 0
        self.permits = asyncio.Semaphore(0)
        self.closed = asyncio.Event()

    async def stream(self, prompt: Prompt, params: GenerationParams) -> AsyncGenerator[Delta | BackendEnd, None]:
        self.streams += 1
        try:
            for piece in PIECES:
                await self.permits.acquire()
                yield Delta(piece)
            yield BackendEnd(FinishReason.STOP, Usage(7, 8), self.model)
        finally:
            self.closed.set()

    def allow(self, count: int) -> None:
        """Lets it give more pieces."""
        for _ in range(count):
            self.permits.release()

    async def close(self) -> None:
        """Has nothing to close."""


class CountedCatalog:
    """A catalog that counts the searches of its collections."""

    def __init__(self, catalog: Catalog) -> None:
        self.searches = 0
        self._catalog = catalog

    async def open(self, key: CollectionKey) -> Any:
        return CountedIndex(await self._catalog.open(key), self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._catalog, name)


class CountedIndex:
    """An index that tells of its searches."""

    def __init__(self, index: Any, counts: CountedCatalog) -> None:
        self._index = index
        self._counts = counts

    async def search(self, query: SearchQuery, filter: Any) -> Candidates:
        self._counts.searches += 1
        found: Candidates = await self._index.search(query, filter)
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._index, name)


@dataclass
class Served:
    """A server in this process whose engines count."""

    client: Client
    encoder: HeldEncoder
    backend: ScriptedBackend
    catalog: CountedCatalog
    admission: Admission
    pipeline: Pipeline

    @property
    def followers(self) -> int:
        """Those who read the answers that are being written."""
        return sum(len(chain.readers) for chain in self.pipeline._writer._flight._flights._joinable.values())

    async def until(self, reached: Callable[[], bool]) -> None:
        """Gives others their turn until that is so."""
        async with asyncio.timeout(PATIENCE_S):
            while not reached():
                await asyncio.sleep(0)


@pytest.fixture
async def served(tmp_path: Path) -> AsyncIterator[Served]:
    """A server with one document, for one test."""
    async with AsyncExitStack() as stack:
        catalog = await stack.enter_async_context(embedded_catalog(tmp_path / "data", ShardKind.EXACT))
        index = await catalog.create(KEY, {}, "")
        document = Document("valve", "Valve", "The valve is tightened to 40 newton metres.")
        await Indexer(index, WordEncoder(), Chunker(passage_counter())).upsert([document], WorkClass.BULK)
        yield await stack.enter_async_context(_serving(CountedCatalog(catalog)))


@asynccontextmanager
async def _serving(catalog: CountedCatalog) -> AsyncIterator[Served]:
    def load() -> Any:
        return load_settings(None, {}, {"server.port": 0, "rerank.enabled": False, "rerank.late.enabled": False})

    live = LiveSettings(load(), load)
    encoder, backend, admission = HeldEncoder(), ScriptedBackend(), Admission(2 * CALLERS, CALLERS, 10_000)
    caches = open_caches(live, NoSharedTier())
    engines = Engines(catalog, OneEncoder(encoder), caches, None, passage_counter(), dispatcher_over(backend))
    pipeline = Pipeline(engines, admission, live)
    guard = Guard(Authenticator(live.current.auth), Limits(live), Metrics(), Drain())
    server = grpc.aio.server(interceptors=[guard], options=channel_options(live.current.server))
    service = RetrievalService(pipeline, caches.answers.operations, live)
    retrieval_pb2_grpc.add_RetrievalServiceServicer_to_server(service, server)
    address = listen_tcp(server, live.current.server)
    await server.start()
    try:
        async with Client(address, timeout_s=PATIENCE_S) as client:
            yield Served(client, encoder, backend, catalog, admission, pipeline)
    finally:
        await server.stop(None)
        await pipeline.close()


@dataclass
class Caller:
    """Somebody who waits for an answer, with what has come so far."""

    served: Served
    events: list[retrieval_pb2.GenerateResponse] = field(default_factory=list)

    async def generate(self) -> None:
        """Reads the answer to its end."""
        retrieve = retrieve_request("docs", QUESTION)
        request = retrieval_pb2.GenerateRequest(retrieve=retrieve, backend=self.served.backend.name)
        async for event in self.served.client.generate(request):
            self.events.append(event)

    @property
    def text(self) -> str:
        """The answer so far."""
        return "".join(event.delta.text for event in self.events)

    @property
    def completed(self) -> retrieval_pb2.Completed | None:
        """How it ended, once it has."""
        ended = [event.completed for event in self.events if event.WhichOneof("event") == "completed"]
        return ended[0] if ended else None


async def test_identical_retrievals_run_each_stage_once(served: Served) -> None:
    """200 callers, one search: all are answered alike, and no reply but one accounts for the stages."""
    callers = [asyncio.create_task(served.client.retrieve("docs", QUESTION)) for _ in range(CALLERS)]
    await served.until(lambda: served.admission.running == CALLERS)
    served.encoder.gate.set()
    replies = await asyncio.gather(*callers)
    assert (served.encoder.queries, served.catalog.searches) == (1, 1)
    assert {reply.hits[0].document_id for reply in replies} == {"valve"}
    assert len({reply.context.text for reply in replies}) == 1
    for stage in ("embed", "search", "fuse", "fetch", "assemble"):
        assert sum(stage in _stages(reply) for reply in replies) == 1, stage


async def test_first_caller_that_leaves_takes_nothing_from_the_others(served: Served) -> None:
    """The work that the first caller began goes on for the 199 others, and is not begun again."""
    first = asyncio.create_task(served.client.retrieve("docs", QUESTION))
    await served.encoder.begun.wait()
    others = [asyncio.create_task(served.client.retrieve("docs", QUESTION)) for _ in range(CALLERS - 1)]
    await served.until(lambda: served.admission.running == CALLERS)
    first.cancel()
    await served.until(lambda: served.admission.running == CALLERS - 1)
    served.encoder.gate.set()
    replies = await asyncio.gather(*others)
    assert {reply.hits[0].document_id for reply in replies} == {"valve"}
    assert (served.encoder.queries, served.catalog.searches) == (1, 1)
    assert not any("search" in _stages(reply) for reply in replies)
    assert first.cancelled()


async def test_identical_answers_are_written_once_and_late_joiners_get_the_prefix(served: Served) -> None:
    """100 callers from the start and 100 who come midway get one answer; the first one leaves after its prefix."""
    served.encoder.gate.set()
    callers = [Caller(served) for _ in range(CALLERS)]
    early, late = callers[: CALLERS // 2], callers[CALLERS // 2 :]
    tasks = [asyncio.create_task(caller.generate()) for caller in early]
    await served.until(lambda: served.followers == len(early))
    served.backend.allow(PREFIX)
    prefix = "".join(PIECES[:PREFIX]).rstrip()  # a space is held back until it is known what follows it
    await served.until(lambda: all(caller.text == prefix for caller in early))
    tasks += [asyncio.create_task(caller.generate()) for caller in late]
    await served.until(lambda: all(caller.text == prefix for caller in late))
    tasks[0].cancel()
    await served.until(lambda: served.followers == CALLERS - 1)
    served.backend.allow(len(PIECES) - PREFIX)
    await asyncio.gather(*tasks[1:])
    assert (served.encoder.queries, served.catalog.searches, served.backend.streams) == (1, 1, 1)
    assert {caller.text for caller in callers[1:]} == {"".join(PIECES)}
    for caller in callers[1:]:
        completed = caller.completed
        assert completed is not None
        assert completed.finish_reason == retrieval_pb2.FINISH_REASON_STOP
        [mark] = completed.citations
        assert caller.text[mark.start : mark.end] == "[1]"
    assert callers[0].completed is None
    assert served.backend.closed.is_set()


async def test_answer_that_nobody_waits_for_is_given_up(served: Served) -> None:
    """The backend's stream is closed when the last caller has left, not before, and the next one gets a new answer."""
    served.encoder.gate.set()
    callers = [Caller(served) for _ in range(20)]
    tasks = [asyncio.create_task(caller.generate()) for caller in callers]
    served.backend.allow(1)
    await served.until(lambda: all(caller.text for caller in callers))
    for task in tasks[:-1]:
        task.cancel()
    await served.until(lambda: served.followers == 1)
    assert not served.backend.closed.is_set()
    tasks[-1].cancel()
    await served.until(lambda: served.followers == 0 and served.backend.closed.is_set())
    served.backend.allow(len(PIECES))
    again = Caller(served)
    await again.generate()
    assert again.text == "".join(PIECES)
    assert served.backend.streams == 2


def _stages(reply: retrieval_pb2.RetrieveResponse) -> set[str]:
    return {common_pb2.Stage.Name(cost.stage).removeprefix("STAGE_").lower() for cost in reply.ledger.stages}
