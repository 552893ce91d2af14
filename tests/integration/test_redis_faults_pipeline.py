"""A Redis that goes away midway: every request is answered and says so, and what it holds again is used again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, closing
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import pytest

from bench._common.consistency.embedded import embedded_catalog
from bench._common.consistency.engines import FactBackend
from bench._common.consistency.facts import TOPICS, fact_document
from bench._common.consistency.replicas import Replica, flags_for
from bench._common.redis_server import RedisServer
from indexers.options import ShardKind
from indexers.types import CollectionKey
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.reuse import Reuse
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Completed, GenerateRequest, Retrieved, RetrieveRequest

KEY = CollectionKey("acme", "docs")
FLAG = "shared_cache_unavailable"
PATIENCE_S = 10.0


@dataclass
class Two:
    """Two servers' request paths over one index and one Redis."""

    redis: RedisServer
    one: Replica
    other: Replica
    contexts: Iterator[int]

    async def retrieve(self, replica: Replica) -> Retrieved:
        """Asks what nobody asked before."""
        request = self._request(replica, f"What is the {TOPICS[0].phrase} in case {next(self.contexts)}?")
        return await replica.pipeline.retrieve(request, StageClock(), Deadline.after(PATIENCE_S))

    async def generate(self, replica: Replica) -> tuple[Retrieved, Completed]:
        """Asks the same question as ever."""
        request = GenerateRequest(self._request(replica, TOPICS[0].question(0)), "facts", 100, 0.0)
        events = [event async for event in replica.pipeline.generate(request, StageClock(), Deadline.after(PATIENCE_S))]
        retrieved, completed = events[0], events[-1]
        assert isinstance(retrieved, Retrieved)
        assert isinstance(completed, Completed)
        return retrieved, completed

    async def until_available(self) -> None:
        """Waits until both use Redis."""
        assert await self.one.available(PATIENCE_S)
        assert await self.other.available(PATIENCE_S)

    async def share_an_answer(self) -> None:
        """Lets one server write an answer to Redis and another one serve it."""
        await self.one.restart()
        await self.other.restart()
        await self.until_available()
        await self.generate(self.one)
        await self.one.flush()
        retrieved, completed = await self.generate(self.other)
        assert (completed.reuse.reuse, completed.reuse.tier) == (Reuse.EQUAL, "shared")
        assert FLAG not in retrieved.ledger.degraded

    def _request(self, replica: Replica, query: str) -> RetrieveRequest:
        thresholds = resolve(replica.live.current, Overrides())
        return RetrieveRequest("r1", KEY.tenant, KEY.collection, query, None, thresholds)


@pytest.fixture
async def two(tmp_path: Path) -> AsyncIterator[Two]:
    """Two servers, for one test that may ruin their Redis."""
    async with AsyncExitStack() as stack:
        redis = stack.enter_context(closing(RedisServer()))
        await asyncio.to_thread(redis.start)
        catalog = await stack.enter_async_context(embedded_catalog(tmp_path / "data", ShardKind.EXACT))
        await catalog.create(KEY, {}, "")
        replicas = []
        for _ in range(2):
            replicas.append(Replica(catalog, flags_for(redis.url), FactBackend()))
            stack.push_async_callback(replicas[-1].close)
        await replicas[0].upsert(KEY, [fact_document("sheet", TOPICS[0], "north", 10_001, 10_002)])
        yield Two(redis, replicas[0], replicas[1], count())


async def test_redis_killed_midway_fails_no_request(two: Two) -> None:
    """All that are under way and all that come after are answered; those that came after say what they went without."""
    await two.share_an_answer()
    under_way = [asyncio.create_task(two.retrieve(two.one)) for _ in range(20)]
    await asyncio.sleep(0)
    await asyncio.to_thread(two.redis.kill)
    later = [await two.retrieve(two.one) for _ in range(20)]
    for reply in [*await asyncio.gather(*under_way), *later]:
        assert reply.hits[0].passage.document_id == "sheet"
    assert all(FLAG in reply.ledger.degraded for reply in later)
    _, completed = await two.generate(two.one)
    assert completed.reuse.reuse is Reuse.EQUAL
    await asyncio.to_thread(two.redis.start)
    await two.until_available()
    assert FLAG not in (await two.retrieve(two.one)).ledger.degraded
    await two.share_an_answer()


async def test_redis_stopped_midway_fails_no_request(two: Two) -> None:
    """A server that takes connections and answers nothing costs its budget a few times, then nothing."""
    await two.share_an_answer()
    two.redis.suspend()
    try:
        replies = await asyncio.gather(*(two.retrieve(two.one) for _ in range(20)))
        replies += [await two.retrieve(two.one) for _ in range(5)]
    finally:
        two.redis.resume()
    assert all(FLAG in reply.ledger.degraded for reply in replies)
    assert {reply.hits[0].passage.document_id for reply in replies} == {"sheet"}
    await two.until_available()
    await two.share_an_answer()


async def test_redis_restarted_empty_is_filled_again(two: Two) -> None:
    """What is gone from Redis is a miss and no more."""
    await two.share_an_answer()
    await asyncio.to_thread(two.redis.kill)
    await asyncio.to_thread(two.redis.start)
    await two.other.restart()
    await two.until_available()
    _, completed = await two.generate(two.other)
    assert (completed.reuse.reuse, completed.reuse.stored) == (Reuse.NONE, True)
    await two.share_an_answer()


@pytest.mark.parametrize("garbage", [b"", b"\x00" * 40, b"HRC\x01" + b"\xff" * 60, b'{"format": 1}'])
async def test_redis_that_holds_garbage_gives_misses(two: Two, garbage: bytes) -> None:
    """Whatever stands under a key in the place of a value is no value, and is written over."""
    await two.share_an_answer()
    with two.redis.client() as client:
        names = list(client.scan_iter())
        assert names
        for name in names:
            client.set(name, garbage)
    await two.other.restart()
    await two.until_available()
    retrieved, completed = await two.generate(two.other)
    assert completed.reuse.reuse is Reuse.NONE
    assert retrieved.hits[0].passage.document_id == "sheet"
    await two.share_an_answer()
