"""Backup and restore of a data folder: consistent while it is written, checked, and never half."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from indexers.backup.embedded import back_up_data_folder, restore_data_folder, restore_others
from indexers.backup.manifest import NAME, read_manifest
from indexers.catalog import EmbeddedCatalog
from indexers.errors import CollectionExists, CollectionNotFound, DataFolderLocked, IndexCorrupt, ModelMismatch
from indexers.homes import Homes, write_homes
from indexers.migrating.migration import Built, Destination
from indexers.models import OneModel
from indexers.options import IndexOptions, ShardKind
from indexers.types import CollectionKey, Counts, Document, EncodedDocument, FieldType
from tests.contract.index_places import MODEL
from tests.fakes.encoded import DIM, encoded, found_documents, hybrid
from tests.fakes.models import SomeModels

KEY = CollectionKey("acme", "docs")
OPTIONS = IndexOptions(kind=ShardKind.EXACT, build_automatically=False)
OTHER = replace(MODEL, model_id="tests/more", dim=2 * DIM)
KEPT = {"d1", "d2", "d3", "d4"}


async def _filled(root: Path, count: int = 5) -> None:
    catalog = EmbeddedCatalog(root, OneModel(MODEL), OPTIONS)
    index = await catalog.create(KEY, {"lang": FieldType.KEYWORD}, "about things")
    await index.upsert([encoded(f"d{n}", ["some words", f"w{n}"], {"lang": "en"}) for n in range(count)])
    await index.build()
    await index.delete(["d0"])
    await catalog.close()


def _everything(folder: Path, key: CollectionKey | None = None):
    return [(one, key or one.key) for one in read_manifest(folder).collections]


async def test_backup_comes_back_as_it_was(tmp_path: Path) -> None:
    """A restored collection holds the documents, vectors, fields and description of the one that was backed up."""
    await _filled(tmp_path / "data")
    folder, new = tmp_path / "backup", tmp_path / "new"
    manifest = back_up_data_folder(tmp_path / "data", folder)
    assert [(one.key, one.counts) for one in manifest.collections] == [(KEY, Counts(4, 8))]
    restore_data_folder(new, folder, _everything(folder), over=False, model=MODEL)
    catalog = EmbeddedCatalog(new, OneModel(MODEL), OPTIONS)
    index = await catalog.open(KEY)
    assert await index.count(None) == Counts(4, 8)
    assert (index.definition.description, set(index.definition.fields)) == ("about things", {"lang"})
    assert await found_documents(index, hybrid(index, "some words", 20)) == KEPT
    await index.build()
    assert await found_documents(index, hybrid(index, "some words", 20)) == KEPT
    await catalog.close()


async def test_backup_is_made_while_a_server_writes(tmp_path: Path) -> None:
    """Whatever is written meanwhile, a backup is the state after some write, never half of one."""
    catalog = EmbeddedCatalog(tmp_path / "data", OneModel(MODEL), OPTIONS)
    index = await catalog.create(KEY, {}, "")

    async def writing() -> None:
        for number in range(1, 30):
            await index.upsert([encoded(f"d{n}", [f"version{number} x{n}"]) for n in range(5)])

    task = asyncio.create_task(writing())
    while index.epoch.write_sequence == 0:
        await asyncio.sleep(0)
    backups: list[Path] = []
    while not task.done():
        backups.append(tmp_path / f"backup{len(backups)}")
        await asyncio.to_thread(back_up_data_folder, tmp_path / "data", backups[-1])
    await task
    await catalog.close()
    query = (
        "SELECT DISTINCT substr(text, 1, instr(text, ' ')) FROM texts JOIN documents USING (document_row)"
        " WHERE removed_sequence IS NULL"
    )
    for folder in backups:
        record = folder / read_manifest(folder).collections[0].files[0].path
        with closing(sqlite3.connect(record)) as connection:
            assert len(connection.execute(query).fetchall()) == 1


async def test_restore_over_a_collection_replaces_it_whole(tmp_path: Path) -> None:
    """Only when it is asked for; what was written since is gone, and the epoch is above all that were seen."""
    root, folder = tmp_path / "data", tmp_path / "backup"
    await _filled(root)
    back_up_data_folder(root, folder)
    catalog = EmbeddedCatalog(root, OneModel(MODEL), OPTIONS)
    index = await catalog.open(KEY)
    await index.upsert([encoded("late", ["some words"])])
    await index.build()
    before = index.epoch
    with pytest.raises(DataFolderLocked):
        restore_data_folder(root, folder, _everything(folder), over=True, model=None)
    await catalog.close()
    with pytest.raises(CollectionExists):
        restore_data_folder(root, folder, _everything(folder), over=False, model=None)
    restore_data_folder(root, folder, _everything(folder), over=True, model=None)
    catalog = EmbeddedCatalog(root, OneModel(MODEL), OPTIONS)
    index = await catalog.open(KEY)
    assert await found_documents(index, hybrid(index, "some words", 20)) == KEPT
    assert index.epoch.write_sequence > before.write_sequence
    assert not list(root.glob("*/.*"))
    await catalog.close()


async def test_restore_under_another_name_leaves_the_first_alone(tmp_path: Path) -> None:
    """A backup can stand beside what it was made of, of another tenant too."""
    root, folder = tmp_path / "data", tmp_path / "backup"
    await _filled(root)
    back_up_data_folder(root, folder, [KEY])
    other = CollectionKey("globex", "copy")
    restore_data_folder(root, folder, _everything(folder, other), over=False, model=MODEL)
    catalog = EmbeddedCatalog(root, OneModel(MODEL), OPTIONS)
    assert [one.definition.key for one in await catalog.list("globex")] == [other]
    assert [one.definition.key for one in await catalog.list("acme")] == [KEY]
    await catalog.close()


@pytest.mark.parametrize("damage", ["changed", "cut", "gone", "manifest", "counts"])
async def test_damaged_backup_replaces_nothing(tmp_path: Path, damage: str) -> None:
    """Every file is compared with its hash, and every count with its rows, before anything is replaced."""
    root, folder = tmp_path / "data", tmp_path / "backup"
    await _filled(root)
    back_up_data_folder(root, folder)
    places = _everything(folder)
    record = folder / places[0][0].files[0].path
    content = record.read_bytes()
    if damage == "changed":
        record.write_bytes(content[:5000] + bytes([content[5000] ^ 1]) + content[5001:])
    elif damage == "cut":
        record.write_bytes(content[:-1])
    elif damage == "gone":
        record.unlink()
    elif damage == "manifest":
        (folder / NAME).unlink()
    else:
        places = [(replace(places[0][0], documents=5), KEY)]
    kept = (root / "acme" / "docs" / "record.sqlite").read_bytes()
    with pytest.raises(IndexCorrupt):
        restore_data_folder(root, folder, places, over=True, model=None)
    assert (root / "acme" / "docs" / "record.sqlite").read_bytes() == kept
    assert not list(root.glob("*/.*"))


async def test_backup_of_another_model_is_refused(tmp_path: Path) -> None:
    """What the configured model could not search is not restored unless it is asked for so (case VEC-04)."""
    await _filled(tmp_path / "data")
    folder, model = tmp_path / "backup", replace(MODEL, revision="2")
    back_up_data_folder(tmp_path / "data", folder)
    with pytest.raises(ModelMismatch):
        restore_data_folder(tmp_path / "new", folder, _everything(folder), over=False, model=model)
    assert not (tmp_path / "new").exists()


async def test_backup_refuses_what_it_cannot_do(tmp_path: Path) -> None:
    """A folder that holds something, and a collection that is not there, are errors, and leave no backup."""
    await _filled(tmp_path / "data")
    (tmp_path / "backup").mkdir()
    (tmp_path / "backup" / "mine").write_text("keep")
    with pytest.raises(FileExistsError):
        back_up_data_folder(tmp_path / "data", tmp_path / "backup")
    with pytest.raises(CollectionNotFound):
        back_up_data_folder(tmp_path / "data", tmp_path / "other", [CollectionKey("acme", "nothing")])
    assert not (tmp_path / "other" / NAME).exists()


async def test_queue_of_jobs_goes_with_a_whole_backup(tmp_path: Path) -> None:
    """Databases beside the collections are copied too, and come back when that is asked for; no other path does."""
    root, folder, new = tmp_path / "data", tmp_path / "backup", tmp_path / "new"
    await _filled(root)
    with closing(sqlite3.connect(root / "jobs.sqlite")) as connection:
        connection.execute("CREATE TABLE runs (name TEXT)")
        connection.execute("INSERT INTO runs VALUES ('one')")
        connection.commit()
    back_up_data_folder(root, folder)
    assert restore_others(new, folder) == ["jobs.sqlite"]
    with closing(sqlite3.connect(new / "jobs.sqlite")) as connection:
        assert connection.execute("SELECT name FROM runs").fetchall() == [("one",)]
    manifest = json.loads((folder / NAME).read_text())
    manifest["others"][0]["part"] = "../jobs.sqlite"
    (folder / NAME).write_text(json.dumps(manifest))
    with pytest.raises(IndexCorrupt):
        restore_others(new, folder)
    assert not (tmp_path / "jobs.sqlite").exists()


@pytest.mark.parametrize("broken", ["homes", "record", "home"])
async def test_restore_repairs_what_is_broken(tmp_path: Path, broken: str) -> None:
    """A collection whose files cannot be read is replaced all the same, wherever it lived."""
    await _filled(tmp_path / "data")
    backup, folder = tmp_path / "backup", tmp_path / "data" / "acme" / "docs"
    back_up_data_folder(tmp_path / "data", backup)
    if broken == "homes":
        (folder / "homes.json").write_text("{")
    elif broken == "record":
        (folder / "record.sqlite").write_bytes(b"no database at all" * 500)
    else:
        write_homes(folder, Homes(serving="homes/1", previous="."))
    with pytest.raises(CollectionExists):
        restore_data_folder(tmp_path / "data", backup, _everything(backup), over=False, model=MODEL)
    restore_data_folder(tmp_path / "data", backup, _everything(backup), over=True, model=MODEL)
    catalog = EmbeddedCatalog(tmp_path / "data", OneModel(MODEL), OPTIONS)
    index = await catalog.open(KEY)
    assert await found_documents(index, hybrid(index, "some words", 20)) == KEPT
    await catalog.close()


async def test_backup_of_a_collection_with_a_model_of_its_own_is_restored(tmp_path: Path) -> None:
    """The configured model is not asked: the collection names the files of its own."""
    catalog = EmbeddedCatalog(tmp_path / "data", SomeModels(MODEL, OTHER), OPTIONS)
    await catalog.create(KEY, {}, "")

    async def encode(documents: Sequence[Document]) -> list[EncodedDocument]:
        return []

    async def accept(built: Built) -> None:
        """Checks nothing."""

    await catalog.migration(KEY).run(Destination(OTHER, "tests/more", encode, token_vectors=True), accept)
    await catalog.close()
    back_up_data_folder(tmp_path / "data", tmp_path / "backup")
    restore_data_folder(
        tmp_path / "new", tmp_path / "backup", _everything(tmp_path / "backup"), over=False, model=MODEL
    )
    restored = EmbeddedCatalog(tmp_path / "new", SomeModels(MODEL, OTHER), OPTIONS)
    assert (await restored.open(KEY)).definition.dense_source == "tests/more"
    await restored.close()
