"""Several processes over one index server: what one of them writes, the others know of, whatever they knew before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest

from indexers.index import Catalog
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.options import QdrantOptions
from indexers.types import CollectionKey
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded, found_documents, hybrid
from tests.fakes.qdrant_servicer import FakeQdrant, serving

KEY = CollectionKey("acme", "docs")
CATALOGS = 3


@pytest.fixture
async def catalogs() -> AsyncIterator[list[Catalog]]:
    """What three processes open on one server."""
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(FakeQdrant()))
        opened: list[Catalog] = []
        for _ in range(CATALOGS):
            opened.append(QdrantCatalog(QdrantOptions("127.0.0.1", port, build_automatically=False), MODEL))
            stack.push_async_callback(opened[-1].close)
        yield opened


async def test_writes_of_several_processes_never_give_one_epoch_twice(catalogs: list[Catalog]) -> None:
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


async def test_change_by_a_process_that_knew_less_replaces_the_whole_document(catalogs: list[Catalog]) -> None:
    """The chunks of a version that another process wrote meanwhile are gone with the next version."""
    await catalogs[0].create(KEY, {}, "")
    one, other = await catalogs[0].open(KEY), await catalogs[1].open(KEY)
    for number in range(4):
        await one.upsert([encoded("d", [f"version{number}"])])
    await other.upsert([encoded("d", ["latest"])])
    found = await one.search(hybrid(one, "version3 latest"), None)
    assert [passage.text for passage in await one.fetch(found.chunk_ids)] == ["latest"]


async def test_writes_at_once_by_several_processes_are_each_seen(catalogs: list[Catalog]) -> None:
    """After each acknowledgement the epoch is another one than before that write began, for every process."""
    await catalogs[0].create(KEY, {}, "")
    indexes = [await catalog.open(KEY) for catalog in catalogs]

    async def write(number: int) -> None:
        index, reader = indexes[number % CATALOGS], indexes[(number + 1) % CATALOGS]
        before = await reader.current_epoch()
        await index.upsert([encoded(f"d{number}", [f"word{number}"])])
        assert await reader.current_epoch() != before
        assert f"d{number}" in await found_documents(reader, hybrid(reader, f"word{number}"))

    await asyncio.gather(*(write(number) for number in range(24)))
    assert len({await index.current_epoch() for index in indexes}) == 1
