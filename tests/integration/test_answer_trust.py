"""With `trust_ms` an answer may be as old as that, from when its evidence was read, not from when it was kept."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from pathlib import Path

from bench._common.consistency.embedded import embedded_catalog
from bench._common.consistency.engines import FactBackend
from bench._common.consistency.facts import TOPICS, fact_document
from bench._common.consistency.replicas import Replica, flags_for
from indexers.options import ShardKind
from indexers.types import CollectionKey
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.speech import BackendEnd, Delta, GenerationParams
from retrieval.thresholds import Overrides, resolve
from retrieval.types import GenerateRequest, Prompt, RetrieveRequest

KEY = CollectionKey("acme", "docs")
PATIENCE_S = 10.0


class HeldBackend(FactBackend):
    """Answers when it is let, and says when it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.begun = asyncio.Event()
        self.gate = asyncio.Event()

    async def stream(self, prompt: Prompt, params: GenerationParams) -> AsyncGenerator[Delta | BackendEnd, None]:
        self.begun.set()
        await self.gate.wait()
        async for piece in super().stream(prompt, params):
            yield piece


async def test_trust_begins_when_the_evidence_was_read(tmp_path: Path) -> None:
    """An answer that took longer than `trust_ms` to write is checked the first time that it serves."""
    async with embedded_catalog(tmp_path / "data", ShardKind.EXACT) as catalog:
        backend = HeldBackend()
        replica = Replica(catalog, {**flags_for(""), "cache.answers.trust_ms": 20}, backend)
        await catalog.create(KEY, {}, "")
        await replica.upsert(KEY, [fact_document("sheet", TOPICS[0], "north", 1, 2)])
        first = asyncio.create_task(_ask(replica))
        await backend.begun.wait()
        read_ns = time.monotonic_ns()
        await replica.upsert(KEY, [fact_document("sheet", TOPICS[0], "north", 3, 4)])
        while time.monotonic_ns() - read_ns < 30_000_000:
            await asyncio.sleep(0)
        backend.gate.set()
        assert "is 1 units" in await first
        assert "is 3 units" in await _ask(replica)
        await replica.close()


async def _ask(replica: Replica) -> str:
    thresholds = resolve(replica.live.current, Overrides())
    asked = RetrieveRequest("r1", KEY.tenant, KEY.collection, TOPICS[0].question(0), None, thresholds)
    request = GenerateRequest(asked, "facts", max_output_tokens=100, temperature=0.0)
    events = replica.pipeline.generate(request, StageClock(), Deadline.after(PATIENCE_S))
    text = "".join([event.text async for event in events if isinstance(event, Delta)])
    assert text
    return text
