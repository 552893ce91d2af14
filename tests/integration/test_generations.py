"""Generations are built beside the service: writes and searches go on, and a failure leaves the old one serving."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from indexers.catalog import EmbeddedCatalog
from indexers.embedded import EmbeddedIndex
from indexers.errors import (
    BuildFailed,
    CollectionNotFound,
    DataFolderLocked,
    IndexCorrupt,
    ModelMismatch,
    TooManyCollections,
)
from indexers.index import Index
from indexers.models import OneModel
from indexers.options import DenseModel, IndexOptions, ShardKind
from indexers.types import CollectionKey, Counts, FieldType
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded, found_documents, hybrid

KEY = CollectionKey("tenant", "docs")
MANUAL = IndexOptions(build_automatically=False)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Is the data folder."""
    return tmp_path / "data"


@pytest.fixture
async def catalog(root: Path) -> AsyncIterator[EmbeddedCatalog]:
    """Is an empty catalog that builds when it is told to."""
    opened = EmbeddedCatalog(root, OneModel(MODEL), MANUAL)
    yield opened
    await opened.close()


def _folder(root: Path) -> Path:
    return root / KEY.tenant / KEY.collection


async def _filled(catalog: EmbeddedCatalog, count: int = 30) -> Index:
    index = await catalog.create(KEY, {"lang": FieldType.KEYWORD}, "")
    await index.upsert([encoded(f"d{n:02}", [f"alpha x{n}", f"beta y{n}"]) for n in range(count)])
    return index


async def test_searches_and_writes_go_on_during_a_build(catalog: EmbeddedCatalog) -> None:
    """While a generation is built, the loop is free, and what is written is found before and after (case VEC-13)."""
    index = await _filled(catalog)
    build = asyncio.create_task(index.build())
    searches = 0
    while not build.done():
        assert await found_documents(index, hybrid(index, "alpha x3", 3))
        searches += 1
        if searches == 3:
            await index.upsert([encoded("new", ["fresh words"]), encoded("d01", ["fresh replaced"])])
            await index.delete(["d02"])
        await asyncio.sleep(0)
    epoch = await build
    assert searches > 3
    assert epoch == index.epoch
    assert epoch.generation == 1
    found = await found_documents(index, hybrid(index, "fresh alpha beta", 100))
    assert found == {f"d{n:02}" for n in range(30)} - {"d02"} | {"new"}
    assert await index.count(None) == Counts(30, 28 * 2 + 2)


async def test_build_forgets_what_only_the_old_generation_needed(catalog: EmbeddedCatalog, root: Path) -> None:
    """After a build the record holds live rows only, and one generation folder is left."""
    index = await _filled(catalog, 5)
    await index.build()
    await index.upsert([encoded("d00", ["gamma"])])
    await index.delete(["d01"])
    await index.build()
    with sqlite3.connect(_folder(root) / "record.sqlite") as record:
        assert record.execute("SELECT count(*) FROM documents WHERE removed_sequence IS NOT NULL").fetchone() == (0,)
        assert record.execute("SELECT count(*) FROM chunks").fetchone() == (1 + 3 * 2,)
        assert record.execute("SELECT count(*) FROM vectors").fetchone() == (1 + 3 * 2,)
        assert record.execute("SELECT count(*) FROM token_codes").fetchone() == (1 + 3 * 2,)
        assert record.execute("SELECT count(*) FROM texts").fetchone() == (4,)
    record.close()
    assert sorted(one.name for one in (_folder(root) / "generations").iterdir()) == ["2", "CURRENT"]


async def test_build_without_changes_does_nothing(catalog: EmbeddedCatalog) -> None:
    """Building twice gives one generation."""
    index = await _filled(catalog, 3)
    assert await index.build() == await index.build()


async def test_failed_build_leaves_the_old_generation(root: Path) -> None:
    """A build that takes too long is stopped, is an error, and everything is found as before."""
    hurried = EmbeddedCatalog(root, OneModel(MODEL), replace(MANUAL, build_timeout_s=0.001))
    index = await _filled(hurried)
    with pytest.raises(BuildFailed, match="longer"):
        await index.build()
    assert index.epoch.generation == 0
    assert len(await found_documents(index, hybrid(index, "alpha", 100))) == 30
    await hurried.close()


async def test_broken_child_is_a_failed_build(catalog: EmbeddedCatalog, root: Path) -> None:
    """What the child says before it dies is the reason of the error."""
    index = await _filled(catalog)
    with sqlite3.connect(_folder(root) / "record.sqlite") as record:
        record.execute("UPDATE vectors SET terms = x'00' WHERE chunk_row = 7")
    record.close()
    with pytest.raises(BuildFailed, match=r"struct\.error"):
        await index.build()
    assert len(await found_documents(index, hybrid(index, "alpha", 100))) == 30


async def test_cancelled_build_can_be_started_again(catalog: EmbeddedCatalog) -> None:
    """Cancelling a build stops it, and the next one is not disturbed."""
    index = await _filled(catalog)
    build = asyncio.create_task(index.build())
    await asyncio.sleep(0)
    build.cancel()
    with pytest.raises(asyncio.CancelledError):
        await build
    assert index.epoch.generation == 0
    assert (await index.build()).generation == 1


async def test_closing_stops_a_build(catalog: EmbeddedCatalog) -> None:
    """A collection that is closed while it builds gives the builder an error, not a cancellation."""
    index = await _filled(catalog)
    build = asyncio.create_task(index.build())
    await asyncio.sleep(0)
    await index.close()
    with pytest.raises(BuildFailed, match="closed"):
        await build
    with pytest.raises(CollectionNotFound):
        await index.fetch([])


async def test_automatic_build_starts_when_enough_has_changed(root: Path) -> None:
    """Past the bound a generation is built in the background; below it nothing happens."""
    catalog = EmbeddedCatalog(root, OneModel(MODEL), IndexOptions(build_after_chunks=20))
    index = await catalog.create(KEY, {}, "")
    await index.upsert([encoded(f"d{n}", ["alpha", "beta"]) for n in range(10)])
    assert isinstance(index, EmbeddedIndex)
    assert not index.needs_build()
    await index.upsert([encoded("more", ["gamma"])])
    async with asyncio.timeout(60):
        while index.epoch.generation == 0:
            await asyncio.sleep(0)
    assert not index.needs_build()
    assert len(await found_documents(index, hybrid(index, "alpha gamma", 100))) == 11
    await catalog.close()


async def test_automatic_build_that_fails_waits_for_more_changes(root: Path) -> None:
    """A failing background build is logged once and not started again by every write."""
    options = IndexOptions(build_after_chunks=4, build_timeout_s=0.001)
    catalog = EmbeddedCatalog(root, OneModel(MODEL), options)
    index = await catalog.create(KEY, {}, "")
    assert isinstance(index, EmbeddedIndex)
    with capture_logs() as logs:
        await index.upsert([encoded("a", ["one", "two", "three", "four", "five"])])
        async with asyncio.timeout(60):
            while not logs:
                await asyncio.sleep(0)
        await index.upsert([encoded("b", ["six"])])
        assert not index.needs_build()
    assert [one["event"] for one in logs] == ["build_failed"]
    await catalog.close()


async def test_generation_without_room_to_serve_it_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mapped file with holes kills whoever touches one on a full disk; what was built makes room again."""
    catalog = EmbeddedCatalog(root, OneModel(MODEL), IndexOptions(build_automatically=False))
    index = await catalog.create(KEY, {}, "")
    await index.upsert([encoded("a", ["one", "two"])])
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=1_000_000))
    with pytest.raises(BuildFailed, match="disk lacks"):
        await index.build()
    assert not list(root.rglob("building"))
    monkeypatch.undo()
    assert (await index.build()).generation == 1
    await catalog.close()


@pytest.mark.parametrize("damage", ["short", "codes", "statistics", "manifest", "shard", "pointer"])
async def test_broken_generation_is_passed_over(catalog: EmbeddedCatalog, root: Path, damage: str) -> None:
    """Whatever is broken in a generation, the record still serves everything, and the next build repairs it."""
    index = await _filled(catalog)
    await index.build()
    await index.upsert([encoded("late", ["alpha late"])])
    await index.delete(["d00"])
    await catalog.close()
    place = _folder(root) / "generations" / "1"
    if damage == "short":
        os.truncate(place / "dense.f32", 10)
    elif damage == "codes":
        (place / "codes.u8").unlink()
    elif damage == "statistics":
        (place / "bm25.npz").write_bytes(bytes(len((place / "bm25.npz").read_bytes())))
    elif damage == "manifest":
        (place / "manifest.json").write_text("{}")
    elif damage == "shard":
        (place / "edge" / "edge_config.json").unlink()
        for segment in (place / "edge" / "segments").iterdir():
            (segment / "segment.json").unlink(missing_ok=True)
    else:
        (place.parent / "CURRENT").write_text("../../elsewhere\n")
    again = EmbeddedCatalog(root, OneModel(MODEL), MANUAL)
    index = await again.open(KEY)
    expected = {f"d{n:02}" for n in range(1, 30)} | {"late"}
    assert await found_documents(index, hybrid(index, "alpha", 100)) == expected
    before = index.epoch
    assert (await index.build()).generation > before.generation
    assert await found_documents(index, hybrid(index, "alpha", 100)) == expected
    await again.close()


async def test_other_kind_of_shard_serves_the_same_folder(catalog: EmbeddedCatalog, root: Path) -> None:
    """A folder can be opened with the other kind of shard; what was built for one is built again for the other."""
    await (await _filled(catalog)).build()
    await catalog.close()
    again = EmbeddedCatalog(root, OneModel(MODEL), replace(MANUAL, kind=ShardKind.EXACT))
    index = await again.open(KEY)
    assert len(await found_documents(index, hybrid(index, "alpha", 100))) == 30
    assert (await index.build()).generation == 2
    await again.close()


async def test_replacing_never_shows_two_versions(catalog: EmbeddedCatalog) -> None:
    """While a document is replaced, a search finds all of one version, never a mix, never nothing (case JOB-02)."""
    index = await _filled(catalog, 3)

    def version(number: int) -> list[str]:
        return [f"omega version{number} part{n}" for n in range(10 - number % 5)]

    await index.upsert([encoded("D", version(0))])

    async def replacing() -> None:
        for number in range(1, 25):
            await index.upsert([encoded("D", version(number))])

    writing = asyncio.create_task(replacing())
    while not writing.done():
        candidates = await index.search(hybrid(index, "omega", 30), None)
        texts = [p.text for p in await index.fetch(candidates.chunk_ids) if p.document_id == "D"]
        versions = {text.split()[1] for text in texts}
        assert len(versions) == 1
        assert sorted(texts) == sorted(version(int(versions.pop().removeprefix("version"))))
        await asyncio.sleep(0)
    await writing


async def test_write_goes_on_when_its_caller_leaves(catalog: EmbeddedCatalog, root: Path) -> None:
    """A write that was cancelled after it began is either there in whole or not, in memory as in the record."""
    index = await _filled(catalog, 2)
    writing = asyncio.create_task(index.upsert([encoded("left", ["omega one", "omega two"])]))
    await asyncio.sleep(0)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    await index.upsert([encoded("next", ["omega three"])])
    served = await index.count(None)
    assert served == Counts(4, 7)
    await catalog.close()
    again = EmbeddedCatalog(root, OneModel(MODEL), MANUAL)
    assert await (await again.open(KEY)).count(None) == served
    await again.close()


@pytest.mark.parametrize("model", [replace(MODEL, dim=768), replace(MODEL, revision="2"), replace(MODEL, model_id="b")])
async def test_another_models_collection_does_not_open(catalog: EmbeddedCatalog, root: Path, model: DenseModel) -> None:
    """Vectors of another model, revision or dimension are refused with both named, before any write (case VEC-04)."""
    await _filled(catalog, 2)
    await catalog.close()
    again = EmbeddedCatalog(root, OneModel(model), MANUAL)
    with pytest.raises(ModelMismatch) as caught:
        await again.open(KEY)
    assert (caught.value.stored_dim, caught.value.configured_dim) == (MODEL.dim, model.dim)
    assert f"{model.model_id}@{model.revision}" in str(caught.value)
    with capture_logs() as logs:
        assert await again.list(KEY.tenant) == []
    assert logs[0]["event"] == "collection_skipped"
    await again.delete(KEY)
    await again.close()


async def test_collections_of_a_tenant_are_bounded(root: Path) -> None:
    """The bound holds a tenant, not all tenants together."""
    catalog = EmbeddedCatalog(root, OneModel(MODEL), replace(MANUAL, max_collections=1))
    await catalog.create(KEY, {}, "")
    with pytest.raises(TooManyCollections):
        await catalog.create(CollectionKey("tenant", "more"), {}, "")
    await catalog.create(CollectionKey("other", "more"), {}, "")
    await catalog.close()


async def test_data_folder_belongs_to_one_process(catalog: EmbeddedCatalog, root: Path) -> None:
    """A second opening of a folder is refused and names the process that holds it."""
    with pytest.raises(DataFolderLocked) as caught:
        EmbeddedCatalog(root, OneModel(MODEL), MANUAL)
    assert str(os.getpid()) in caught.value.holder


def test_data_folder_is_free_when_its_process_dies(root: Path) -> None:
    """The lock of a killed process does not outlive it."""
    code = "import sys; from pathlib import Path; from indexers.folder_lock import FolderLock;"
    code += " lock = FolderLock(Path(sys.argv[1])); print('held', flush=True); sys.stdin.read()"
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(root)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        with pytest.raises(DataFolderLocked, match=str(holder.pid)):
            EmbeddedCatalog(root, OneModel(MODEL), MANUAL)
        holder.send_signal(signal.SIGKILL)
    asyncio.run(EmbeddedCatalog(root, OneModel(MODEL), MANUAL).close())


@pytest.mark.parametrize("damage", ["garbage", "version", "missing"])
async def test_broken_record_says_so(catalog: EmbeddedCatalog, root: Path, damage: str) -> None:
    """A record that cannot be read is an error that names the file."""
    await _filled(catalog, 1)
    await catalog.close()
    record = _folder(root) / "record.sqlite"
    if damage == "garbage":
        record.write_bytes(b"no database" * 1000)
    elif damage == "version":
        with sqlite3.connect(record) as connection:
            connection.execute("PRAGMA user_version = 99")
        connection.close()
    else:
        record.unlink()
    again = EmbeddedCatalog(root, OneModel(MODEL), MANUAL)
    with pytest.raises(IndexCorrupt, match="record"):
        await again.open(KEY)
    await again.close()
