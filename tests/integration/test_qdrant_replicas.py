"""Several processes over one index server: what one of them writes, the others know of, whatever they knew before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any, TypeAlias

import pytest

from indexers.index import Catalog
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.options import QdrantOptions
from indexers.types import CollectionKey
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded, found_documents, hybrid
from tests.fakes.qdrant_servicer import FakeQdrant, serving

Catalogs: TypeAlias = list[Catalog]
KEY = CollectionKey("acme", "docs")
CATALOGS = 3
STATES = ".collections"


class Held(FakeQdrant):
    """A server that, when it is told so, keeps the next state of a collection waiting."""

    def __init__(self) -> None:
        super().__init__()
        self.holds = False
        self.reached = asyncio.Event()
        self.release = asyncio.Event()

    async def Upsert(self, request: Any, context: Any) -> Any:  # noqa: N802 - the protocol's name
        if self.holds and request.collection_name.endswith(STATES):
            self.holds = False
            self.reached.set()
            await self.release.wait()
        return await super().Upsert(request, context)


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
            opened.append(QdrantCatalog(QdrantOptions("127.0.0.1", port, build_automatically=False), MODEL))
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


async def test_write_that_is_acknowledged_last_is_seen_though_it_began_first(server: Held, catalogs: Catalogs) -> None:
    """Two processes write at once; what was read between the two acknowledgements has an epoch of its own."""
    await catalogs[0].create(KEY, {}, "")
    first, second, reader = [await catalog.open(KEY) for catalog in catalogs]
    before = await reader.current_epoch()
    server.holds = True
    writing = asyncio.create_task(first.upsert([encoded("first", ["one"])]))
    await server.reached.wait()
    await second.upsert([encoded("second", ["two"])])
    between = await reader.current_epoch()
    server.release.set()
    await writing
    after = await reader.current_epoch()
    assert len({before, between, after}) == 3
    assert await found_documents(reader, hybrid(reader, "one two")) == {"first", "second"}
    await second.upsert([encoded("third", ["three"])])
    assert await reader.current_epoch() > max(between, after)
