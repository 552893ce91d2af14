"""Two processes' caches over one shared tier: what one has made, the other need not make again."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from encoders.types import WorkClass
from indexers.types import CollectionKey, Document
from retrieval.answers.operating import Verdict, answer_key
from retrieval.caching.open import open_caches
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.live import LiveSettings
from retrieval.pipeline import Engines, Pipeline
from retrieval.reuse import Reuse
from retrieval.server.app import build
from retrieval.settings.load import Loaded, load_settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Completed, GenerateRequest, Retrieved, RetrieveRequest
from tests.fakes.shared_tier import MemoryTier

QUESTION = "How tight is valve 7?"


@dataclass(frozen=True, slots=True)
class _Process:
    """The request path of one process."""

    engines: Engines
    pipeline: Pipeline
    live: LiveSettings

    def request(self, question: str = QUESTION) -> RetrieveRequest:
        return RetrieveRequest("r", "acme", "docs", question, None, resolve(self.live.current, Overrides()))

    async def retrieve(self) -> Retrieved:
        return await self.pipeline.retrieve(self.request(), StageClock(), Deadline.after(10))

    async def ask(self, question: str = QUESTION) -> Completed:
        wanted = GenerateRequest(self.request(question), "extractive", 200, 0.0)
        events = [event async for event in self.pipeline.generate(wanted, StageClock(), Deadline.after(10))]
        assert isinstance(events[-1], Completed)
        return events[-1]


@pytest.fixture
async def processes(tmp_path: Path) -> AsyncIterator[tuple[_Process, _Process]]:
    """Two request paths with caches of their own, over one collection and one tier."""
    flags = {"data.folder": str(tmp_path / "data"), "server.port": 0, "cache.redis.share_results": True}

    def load() -> Loaded:
        return load_settings(None, {}, flags)

    live, tier = LiveSettings(load(), load), MemoryTier()
    async with build(live) as app:
        index = await app.engines.catalog.create(CollectionKey("acme", "docs"), {}, "")
        document = Document("valve", "Valve 7", "Valve 7 is tightened to 40 newton metres. Use a wrench.")
        await app.indexer_of(index).upsert([document], WorkClass.BULK)
        made = []
        for _ in range(2):
            engines = replace(app.engines, caches=open_caches(live, tier))
            made.append(_Process(engines, Pipeline(engines, app.pipeline._gate.admission, live), live))
        yield made[0], made[1]
        for process in made:
            await process.pipeline.close()


def _tiers(retrieved: Retrieved) -> dict[str, str]:
    return {use.cache: use.tier for use in retrieved.ledger.caches}


async def test_result_of_another_process_serves(processes: tuple[_Process, _Process]) -> None:
    """The other process finds the same hits and context in the shared tier, from then on in its own memory."""
    first, second = processes
    made = await first.retrieve()
    there, here = await second.retrieve(), await second.retrieve()
    assert (_tiers(made)["results"], _tiers(there)["results"], _tiers(here)["results"]) == ("", "shared", "memory")
    rows = [replace(hit, passage=replace(hit.passage, row=0)) for hit in made.hits]
    assert list(there.hits) == list(here.hits) == rows
    assert there.context.text == made.context.text
    assert there.epoch == made.epoch


async def test_result_of_another_process_gets_its_vectors_back(processes: tuple[_Process, _Process]) -> None:
    """Vectors are shared apart from results, and an answer made on such a result can serve similar questions too."""
    first, second = processes
    await first.retrieve()
    end = await second.ask()
    assert end.reuse.stored
    kept = second.engines.caches.answers.operations._store.peek(
        answer_key("acme", "docs", bytes.fromhex(end.reuse.key))
    )
    assert kept is not None
    assert kept.encoded is not None


async def test_answer_of_another_process_serves_until_it_is_reported(processes: tuple[_Process, _Process]) -> None:
    """The other process replays it from the shared tier; after a verdict there, this one alone still holds it."""
    first, second = processes
    made = await first.ask()
    there = await second.ask()
    assert (there.reuse.reuse, there.reuse.tier, there.reuse.key) == (Reuse.EQUAL, "shared", made.reuse.key)
    key = answer_key("acme", "docs", bytes.fromhex(made.reuse.key))
    assert (await second.engines.caches.answers.operations.report(key, Verdict.BAD)).removed
    assert (await second.ask()).reuse.reuse is Reuse.NONE


async def test_reported_answer_leaves_the_shared_tier_once_it_is_back(processes: tuple[_Process, _Process]) -> None:
    """A report that could not reach the tier says so, and is made good later; no other process gets the answer then."""
    first, second = processes
    made = await first.ask()
    answers, tier = first.engines.caches.answers, first.engines.caches.shared
    assert isinstance(tier, MemoryTier)
    key = answer_key("acme", "docs", bytes.fromhex(made.reuse.key))
    tier.available = False
    reported = await answers.operations.report(key, Verdict.BAD)
    assert (reported.removed, reported.shared_available) == (True, False)
    await answers.save()
    tier.available = True
    assert key in tier.values
    await answers.save()
    assert key not in tier.values
    assert (await second.ask()).reuse.reuse is Reuse.NONE
