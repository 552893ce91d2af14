"""Several processes over one index server: what one of them writes, the others know of, whatever they knew before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, TypeAlias

import grpc
import pytest

from indexers.errors import CollectionExists, IndexUnavailable
from indexers.index import Catalog
from indexers.models import OneModel
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.lease import WRITING, Lease
from indexers.qdrant.options import QdrantOptions
from indexers.types import CollectionKey, Counts
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded, found_documents, hybrid
from tests.fakes.qdrant_servicer import FakeQdrant, serving

Catalogs: TypeAlias = list[Catalog]
KEY = CollectionKey("acme", "docs")
CATALOGS = 3


class Held(FakeQdrant):
    """A server that, when told so, keeps the next call of a kind waiting, or hears no more of its writer there."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = ""
        self.dies_at = ""
        self.reached = asyncio.Event()
        self.release = asyncio.Event()

    async def _enter(self, name: str, context: Any) -> None:
        if self.holds == name:
            self.holds = ""
            self.reached.set()
            await self.release.wait()
        if self.dies_at == name:
            self.dies_at = ""
            self.fail_next |= {name: grpc.StatusCode.UNAVAILABLE, "SetPayload": grpc.StatusCode.UNAVAILABLE}
        await super()._enter(name, context)


@pytest.fixture
def server() -> Held:
    """The state of one server."""
    return Held()


@pytest.fixture
async def catalogs(server: Held) -> AsyncIterator[Catalogs]:
    """What three processes open on the server."""
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(server))
        opened: list[Catalog] = []
        for _ in range(CATALOGS):
            opened.append(QdrantCatalog(QdrantOptions("127.0.0.1", port, build_automatically=False), OneModel(MODEL)))
            stack.push_async_callback(opened[-1].close)
        yield opened


async def test_writes_of_several_processes_never_give_one_epoch_twice(catalogs: Catalogs) -> None:
    """A process that has not looked since others wrote goes on from what is stored, not from what it knew."""
    await catalogs[0].create(KEY, {}, "")
    indexes = [await catalog.open(KEY) for catalog in catalogs]
    seen = [await indexes[2].current_epoch()]
    for number, writer in enumerate((0, 0, 0, 1, 0, 1)):
        await indexes[writer].upsert([encoded(f"d{number}", ["words"])])
        seen.append(await indexes[2].current_epoch())
    await indexes[1].delete(["d0"])
    seen.append(await indexes[2].current_epoch())
    assert seen == sorted(set(seen))


async def test_change_by_a_process_that_knew_less_replaces_the_whole_document(catalogs: Catalogs) -> None:
    """The chunks of a version that another process wrote meanwhile are gone with the next version."""
    await catalogs[0].create(KEY, {}, "")
    one, other = await catalogs[0].open(KEY), await catalogs[1].open(KEY)
    for number in range(4):
        await one.upsert([encoded("d", [f"version{number}"])])
    await other.upsert([encoded("d", ["latest"])])
    found = await one.search(hybrid(one, "version3 latest"), None)
    assert [passage.text for passage in await one.fetch(found.chunk_ids)] == ["latest"]


async def test_writes_of_several_processes_take_turns(server: Held, catalogs: Catalogs) -> None:
    """A second writer waits for the first one's end, and a reader never sees one epoch for two states."""
    await catalogs[0].create(KEY, {}, "")
    first, second, reader = [await catalog.open(KEY) for catalog in catalogs]
    before = await reader.current_epoch()
    server.holds = "Upsert"
    writing = asyncio.create_task(first.upsert([encoded("first", ["one"])]))
    await server.reached.wait()
    waiting = asyncio.create_task(second.upsert([encoded("second", ["two"])]))
    between = await reader.current_epoch()
    server.release.set()
    one, other = await writing, await waiting
    assert before < between < one.epoch < other.epoch == await reader.current_epoch()
    assert await found_documents(reader, hybrid(reader, "one two")) == {"first", "second"}


async def test_conditional_writes_of_many_processes_lose_none(catalogs: Catalogs) -> None:
    """Of processes that all write one document from the same state exactly one does, whichever it is."""
    await catalogs[0].create(KEY, {}, "")
    indexes = [await catalog.open(KEY) for catalog in catalogs]
    for number in range(4):
        since = (await indexes[0].current_epoch()).write_sequence
        texts = [f"round{number} writer{writer}" for writer in range(CATALOGS)]
        calls = [one.upsert([encoded("d", [text])], since) for one, text in zip(indexes, texts, strict=True)]
        results = await asyncio.gather(*calls)
        [winner] = [writer for writer, result in enumerate(results) if not result.superseded]
        (passage,) = await indexes[0].fetch(await indexes[0].chunk_ids("d"))
        assert passage.text == texts[winner]
        assert (await indexes[0].count(None)).chunks == 1


async def test_writer_that_died_is_followed_by_another(server: Held) -> None:
    """A turn whose holder is silent passes to the next, who makes good what was left half done (case JOB-02)."""
    async with serving(server) as port, _catalog(port) as first, _catalog(port) as second:
        one = await first.create(KEY, {}, "")
        await one.upsert([encoded("old", ["ancient words"])])
        other = await second.open(KEY)
        server.dies_at = "Delete"  # after the new chunks
        with pytest.raises(IndexUnavailable):
            await one.upsert([encoded("new", ["fresh words"]), encoded("old", ["replaced words"])])
        since = (await other.current_epoch()).write_sequence
        assert (await other.upsert([encoded("next", ["words"])], since)).superseded == frozenset()
        stored = await other.look_up(["new", "old", "next"])
        assert {name: bool(one.fingerprint) for name, one in stored.items()} == {"old": False, "next": True}
        assert await found_documents(other, hybrid(other, "fresh words", 20)) == {"old", "next"}
        again = [encoded("new", ["fresh words"]), encoded("old", ["replaced words"])]
        assert (await other.upsert(again, since)).superseded == frozenset()
        assert await other.count(None) == Counts(3, 3)


async def test_deletion_that_died_is_completed_by_another(server: Held) -> None:
    """The next writer removes what a dead one had only marked as deleted, and a build in between does too (JOB-03)."""
    async with serving(server) as port, _catalog(port) as first, _catalog(port) as second:
        one = await first.create(KEY, {}, "")
        await one.upsert([encoded("gone", ["some words"]), encoded("kept", ["other words"])])
        other = await second.open(KEY)
        server.dies_at = "Delete"
        with pytest.raises(IndexUnavailable):
            await one.delete(["gone"])
        await other.build()
        assert await other.count(None) == Counts(1, 1)
        assert await found_documents(other, hybrid(other, "some words", 20)) == {"kept"}


async def test_writer_that_was_silent_too_long_changes_nothing_more(server: Held) -> None:
    """Who wakes up after another has taken over is told so, and the other's state stands."""
    async with serving(server) as port, _catalog(port) as first, _catalog(port) as second:
        one = await first.create(KEY, {}, "")
        other = await second.open(KEY)
        lease = Lease(one._store, one._names, WRITING)
        await lease.take()
        result = await other.upsert([encoded("d", ["words"])])
        with pytest.raises(IndexUnavailable, match="taken over"):
            await lease.set({"write_sequence": 1}, free=True)
        assert await other.current_epoch() == result.epoch


async def test_builds_of_several_processes_follow_each_other(catalogs: Catalogs) -> None:
    """Two processes that build at once make one generation after the other, and both serve the last one."""
    await catalogs[0].create(KEY, {}, "")
    indexes = [await catalog.open(KEY) for catalog in catalogs]
    await indexes[0].upsert([encoded(f"d{number}", ["some words", f"w{number}"]) for number in range(20)])
    builds = [asyncio.create_task(one.build()) for one in indexes[:2]]
    await indexes[2].upsert([encoded("late", ["some words"])])
    await asyncio.gather(*builds)
    assert {(await one.current_epoch()).generation for one in indexes} == {2}
    assert await indexes[2].count(None) == Counts(21, 41)
    found = await found_documents(indexes[2], hybrid(indexes[2], "some words", 50))
    assert found == {"late", *(f"d{number}" for number in range(20))}


@asynccontextmanager
async def _catalog(port: int) -> AsyncIterator[QdrantCatalog]:
    """Opens a catalog whose turns pass on after a second of silence."""
    options = QdrantOptions("127.0.0.1", port, timeout_s=0.5, lease_s=0.5, build_automatically=False)
    catalog = QdrantCatalog(options, OneModel(MODEL))
    try:
        yield catalog
    finally:
        await catalog.close()


async def test_collection_that_several_processes_make_is_made_once(catalogs: Catalogs) -> None:
    """One process makes it, the others are told so, and what was written at once is kept."""

    async def made(catalog: Catalog, number: int) -> bool:
        try:
            index = await catalog.create(KEY, {}, "")
        except CollectionExists:
            return False
        await index.upsert([encoded(f"d{number}", ["words"])])
        return True

    assert sorted(await asyncio.gather(*(made(one, n) for n, one in enumerate(catalogs)))) == [False, False, True]
    index = await catalogs[0].open(KEY)
    assert await index.count(None) == Counts(1, 1)


async def test_collection_is_not_deleted_under_a_write(server: Held, catalogs: Catalogs) -> None:
    """Who deletes waits for the write that is under way; a new collection of the name starts empty."""
    await catalogs[0].create(KEY, {}, "")
    writer = await catalogs[1].open(KEY)
    server.holds = "Upsert"
    writing = asyncio.create_task(writer.upsert([encoded("late", ["words"])]))
    await server.reached.wait()
    deleting = asyncio.create_task(catalogs[0].delete(KEY))
    server.release.set()
    await writing
    await deleting
    again = await catalogs[0].create(KEY, {}, "")
    assert await again.count(None) == Counts(0, 0)
    assert server.without_tenant == []
