"""Backup and restore of collections on a server, against the documented REST interface of snapshots."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trustme

from indexers.backup.manifest import NAME, read_manifest
from indexers.errors import CollectionExists, CollectionNotFound, IndexCorrupt, IndexUnavailable, ModelMismatch
from indexers.index import Index
from indexers.models import OneModel
from indexers.qdrant.backup import QdrantBackup
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.options import QdrantOptions
from indexers.qdrant.snapshots import Snapshots
from indexers.qdrant.store import QdrantStore
from indexers.types import CollectionKey, Counts, FieldType
from retrieval.cli.main import execute
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded, found_documents, hybrid
from tests.fakes.qdrant_servicer import FakeQdrant, serving
from tests.fakes.qdrant_snapshots import FakeSnapshots, serving_snapshots

KEY = CollectionKey("acme", "docs")


@dataclass
class Server:
    """A server with a catalog and what backs it up."""

    fake: FakeQdrant
    rest: FakeSnapshots
    catalog: QdrantCatalog
    backup: QdrantBackup


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    """Is an empty server."""
    async with AsyncExitStack() as stack:
        fake = FakeQdrant()
        rest = FakeSnapshots(fake)
        port = await stack.enter_async_context(serving(fake))
        rest_port = await stack.enter_async_context(serving_snapshots(rest))
        address = f"http://127.0.0.1:{rest_port}"
        options = QdrantOptions("127.0.0.1", port, rest_url=address, build_automatically=False)
        catalog = QdrantCatalog(options, OneModel(MODEL))
        stack.push_async_callback(catalog.close)
        store = QdrantStore(options)
        stack.push_async_callback(store.close)
        yield Server(fake, rest, catalog, QdrantBackup(store, await stack.enter_async_context(Snapshots(options))))


async def _filled(catalog: QdrantCatalog) -> Index:
    index = await catalog.create(KEY, {"lang": FieldType.KEYWORD}, "about things")
    await index.upsert([encoded(f"d{n}", ["some words", f"w{n}"], {"lang": "en"}) for n in range(4)])
    await index.build()
    await index.delete(["d0"])
    return index


def _everything(folder: Path, key: CollectionKey | None = None):
    return [(one, key or one.key) for one in read_manifest(folder).collections]


async def test_collection_comes_back_after_it_was_deleted(server: Server, tmp_path: Path) -> None:
    """Documents, chunks, statistics and the alias are there again, and the server keeps no snapshots."""
    index = await _filled(server.catalog)
    statistics = index.statistics.document_count
    assert await server.backup.keys("acme") == [KEY]
    manifest = await server.backup.back_up(tmp_path / "b", [KEY])
    assert [(one.key, one.counts) for one in manifest.collections] == [(KEY, Counts(3, 6))]
    assert server.rest.made == {}
    await server.catalog.delete(KEY)
    await server.backup.restore(tmp_path / "b", _everything(tmp_path / "b"), over=False, model=MODEL)
    index = await server.catalog.open(KEY)
    assert await index.count(None) == Counts(3, 6)
    assert index.statistics.document_count == statistics
    assert await found_documents(index, hybrid(index, "some words", 20)) == {"d1", "d2", "d3"}
    assert server.fake.aliases["headrace.acme.docs"] == "headrace.acme.docs.g0"
    await index.upsert([encoded("more", ["some words"])])
    await index.build()
    assert (await index.count(None)).documents == 4
    await server.catalog.delete(KEY)
    assert set(server.fake.collections) == {"headrace.collections"}
    assert server.fake.without_tenant == []


async def test_restore_over_a_collection_switches_it_in_one_step(server: Server, tmp_path: Path) -> None:
    """Only when asked for; whoever has it open finds the restored state at a newer epoch, and the rest is dropped."""
    index = await _filled(server.catalog)
    await server.backup.back_up(tmp_path / "b", [KEY])
    before = (await index.upsert([encoded("late", ["some words"])])).epoch
    with pytest.raises(CollectionExists):
        await server.backup.restore(tmp_path / "b", _everything(tmp_path / "b"), over=False, model=MODEL)
    for _ in range(2):
        await server.backup.restore(tmp_path / "b", _everything(tmp_path / "b"), over=True, model=MODEL)
        assert await index.current_epoch() > before
        assert await found_documents(index, hybrid(index, "some words", 20)) == {"d1", "d2", "d3"}
        before = (await index.upsert([encoded("late", ["some words"])])).epoch
    assert len(server.fake.collections) == 3


async def test_backup_can_be_restored_for_another_tenant(server: Server, tmp_path: Path) -> None:
    """Every point then is the other tenant's, and the first one's collection stays as it is."""
    index = await _filled(server.catalog)
    await server.backup.back_up(tmp_path / "b", [KEY])
    other = CollectionKey("globex", "copy")
    await server.backup.restore(tmp_path / "b", _everything(tmp_path / "b", other), over=False, model=MODEL)
    copy = await server.catalog.open(other)
    assert await copy.count(None) == await index.count(None) == Counts(3, 6)
    assert await found_documents(copy, hybrid(copy, "some words", 20)) == {"d1", "d2", "d3"}


async def test_writers_wait_while_snapshots_are_made(server: Server, tmp_path: Path) -> None:
    """Chunks and documents of a backup are of one moment; a write that comes meanwhile is not in it, and not lost."""
    index = await _filled(server.catalog)
    server.rest.making = asyncio.Event()
    backing_up = asyncio.create_task(server.backup.back_up(tmp_path / "b", [KEY]))
    while server.fake.calls.count("Count") < 2:
        await asyncio.sleep(0)
    writing = asyncio.create_task(index.upsert([encoded("late", ["some words"])]))
    while server.fake.calls[-1] != "Get":
        await asyncio.sleep(0)
    server.rest.making.set()
    manifest = await backing_up
    await writing
    assert manifest.collections[0].counts == Counts(3, 6)
    await server.backup.restore(
        tmp_path / "b", _everything(tmp_path / "b", replace(KEY, collection="old")), over=False, model=MODEL
    )
    assert await (await server.catalog.open(replace(KEY, collection="old"))).count(None) == Counts(3, 6)
    assert (await index.count(None)).documents == 4


async def test_what_is_not_whole_replaces_nothing(server: Server, tmp_path: Path) -> None:
    """A snapshot that arrives changed is no backup; a changed file, another model or a lost point is no restore."""
    index = await _filled(server.catalog)
    server.rest.damaged = True
    with pytest.raises(IndexCorrupt):
        await server.backup.back_up(tmp_path / "bad", [KEY])
    assert not (tmp_path / "bad" / NAME).exists()
    server.rest.damaged = False
    folder = tmp_path / "b"
    await server.backup.back_up(folder, [KEY])
    before, there = await index.current_epoch(), set(server.fake.collections)
    with pytest.raises(ModelMismatch):
        await server.backup.restore(folder, _everything(folder), over=True, model=replace(MODEL, revision="2"))
    server.rest.forgets = True
    with pytest.raises(IndexCorrupt, match="not"):
        await server.backup.restore(folder, _everything(folder), over=True, model=MODEL)
    with (folder / "acme" / "docs" / "chunks.snapshot").open("ab") as file:
        file.write(b"more")
    with pytest.raises(IndexCorrupt):
        await server.backup.restore(folder, _everything(folder), over=True, model=MODEL)
    assert await index.current_epoch() == before
    assert set(server.fake.collections) == there


async def test_failures_of_the_server_are_unavailable(server: Server, tmp_path: Path) -> None:
    """A refused call, a collection on several nodes and one that is not there are errors of ours."""
    await _filled(server.catalog)
    server.rest.remote_shards = [{"shard_id": 1, "peer_id": 2}]
    with pytest.raises(IndexUnavailable, match="several nodes"):
        await server.backup.back_up(tmp_path / "a", [KEY])
    server.rest.remote_shards = []
    server.rest.refused = "POST"
    with pytest.raises(IndexUnavailable, match="status 500"):
        await server.backup.back_up(tmp_path / "b", [KEY])
    with pytest.raises(CollectionNotFound):
        await server.backup.back_up(tmp_path / "c", [CollectionKey("acme", "nothing")])
    server.rest.refused = ""
    await (await server.catalog.open(KEY)).upsert([encoded("after", ["words"])])  # nobody holds the turn


async def test_snapshots_go_over_tls_with_the_key(tmp_path: Path) -> None:
    """With the right certificates and key the server answers, otherwise it is unavailable."""
    authority, fake = trustme.CA(), FakeQdrant()
    rest = FakeSnapshots(fake)
    rest.api_key = "secret"
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    certificate = authority.issue_cert("localhost")
    certificate.private_key_and_cert_chain_pem.write_to_path(tmp_path / "server.pem")
    async with serving_snapshots(rest, ssl_certfile=str(tmp_path / "server.pem")) as port:
        right = QdrantOptions("localhost", rest_url=f"https://localhost:{port}", ca_file=tmp_path / "ca.pem")
        async with Snapshots(replace(right, api_key="secret")) as snapshots:
            await snapshots.check_whole("any")
        for options in (right, replace(right, ca_file=None, api_key="secret")):
            async with Snapshots(options) as snapshots:
                with pytest.raises(IndexUnavailable):
                    await snapshots.check_whole("any")


@pytest.mark.qdrant_server
@pytest.mark.skipif(not os.environ.get("QDRANT_URL"), reason="needs a Qdrant server at QDRANT_URL")
async def test_real_server_gives_and_takes_snapshots(tmp_path: Path) -> None:
    """What was backed up from a real server comes back under another name."""
    parts = urlsplit(os.environ["QDRANT_URL"])
    rest = os.environ.get("QDRANT_REST_URL", "")
    options = QdrantOptions(
        parts.hostname or "", parts.port or 6334, rest_url=rest, timeout_s=30.0, prefix=f"test-{os.getpid()}"
    )
    catalog, store, copied = (
        QdrantCatalog(options, OneModel(MODEL)),
        QdrantStore(options),
        replace(KEY, collection="copy"),
    )
    async with Snapshots(options) as snapshots:
        backup = QdrantBackup(store, snapshots)
        await _filled(catalog)
        await backup.back_up(tmp_path / "b", [KEY])
        await backup.restore(tmp_path / "b", _everything(tmp_path / "b", copied), over=False, model=MODEL)
        copy = await catalog.open(copied)
        assert await copy.count(None) == Counts(3, 6)
        assert await found_documents(copy, hybrid(copy, "some words", 20)) == {"d1", "d2", "d3"}
        for key in (KEY, copied):
            await catalog.delete(key)
    await catalog.close()
    await store.close()


async def test_commands_back_up_what_the_settings_name(server: Server, tmp_path: Path) -> None:
    """With a server configured the same two commands are about its collections."""
    await _filled(server.catalog)
    options = server.backup._store.options
    address = f"http://{options.host}:{options.grpc_port}"
    settings = ("index.kind=qdrant", f"index.qdrant.url={address}", f"index.qdrant.rest_url={options.rest_url}")
    sets = [part for one in settings for part in ("--set", one)]
    folder = str(tmp_path / "b")
    assert await asyncio.to_thread(execute, ["backup", folder, "--tenant", "acme", *sets], {}) == 0
    command = ["restore", folder, "--as", "copy", "--any-model", *sets]
    assert await asyncio.to_thread(execute, command, {}) == 0
    assert await (await server.catalog.open(replace(KEY, collection="copy"))).count(None) == Counts(3, 6)
