"""Backup and restore of a data folder: each record, and the queue of jobs.

Generations are left out. They are made of the record, and one that is not of the very same moment would serve what the
record no longer holds. Restoring a record over another is one rename; whatever crashes, one of the two is there, whole.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from indexers.backup.manifest import (
    EMBEDDED,
    BackedUp,
    BackupFile,
    Manifest,
    check_backup,
    check_empty,
    described,
    now,
    read_manifest,
    write_manifest,
)
from indexers.backup.sqlite_copy import copy_database, fold_log
from indexers.errors import CollectionExists, CollectionNotFound, IndexCorrupt
from indexers.folder_lock import FolderLock
from indexers.generation import sync
from indexers.homes import (
    GENERATIONS,
    HOMES_FILE,
    RECORD,
    Homes,
    is_collection,
    serving_record,
    sweep_homes,
    write_homes,
)
from indexers.names import check_key
from indexers.options import DenseModel
from indexers.record_read import RecordReader
from indexers.record_schema import definition_from_json, definition_to_json, record_errors
from indexers.types import CollectionKey

_LEFT_OUT = "generations, which are made of the records: the first build after a restore makes them anew"
_RECORD_PART = "record"
_OTHER_NAME = r"(jobs/)?[a-z0-9_-]{1,63}\.sqlite"
_OTHER_PARTS = ("*.sqlite", "jobs/*.sqlite")  # what the data folder holds besides collections


def back_up_data_folder(root: Path, folder: Path, keys: Sequence[CollectionKey] = ()) -> Manifest:
    """Copies all collections, or the named ones, into an empty folder; a server may go on meanwhile.

    Raises:
        CollectionNotFound: a named collection is not there.
        IndexCorrupt: a record cannot be read.
        FileExistsError: the folder is not empty.
    """
    check_empty(folder)
    chosen = keys or _all_keys(root)
    copied = [_copy_collection(root, folder, key) for key in chosen]
    others = () if keys else tuple(_copy_others(root, folder))
    manifest = Manifest(EMBEDDED, now(), tuple(copied), others, _LEFT_OUT)
    write_manifest(folder, manifest)
    return manifest


def restore_data_folder(
    root: Path, folder: Path, places: Sequence[tuple[BackedUp, CollectionKey]], *, over: bool, model: DenseModel | None
) -> None:
    """Puts collections of a backup into a data folder that no server holds, each under the key given with it.

    Everything is checked before anything is replaced: each hash, each count, the model. A restored collection has a
    write sequence above all that it ever had, so nothing that was cached before is taken for its state.

    Raises:
        DataFolderLocked: a server, or another run, holds the data folder.
        CollectionExists: one is there already, and `over` is not given.
        IndexCorrupt: the backup is not whole.
        ModelMismatch: see `check_backup`.
    """
    manifest = read_manifest(folder)
    check_backup(folder, manifest, [one for one, _ in places], model)
    lock = FolderLock(root)
    try:
        for _, key in places:
            if not over and is_collection(root / check_key(key).tenant / key.collection):
                raise CollectionExists(key.collection)
        staged = [(_staged(root, folder, one, key), key) for one, key in places]
        for fresh, key in staged:
            _put(root, fresh, key)
    finally:
        for left in root.glob("*/.restored-*"):
            shutil.rmtree(left, ignore_errors=True)
        lock.release()


def restore_others(root: Path, folder: Path) -> list[str]:
    """Puts back what belongs to no collection, such as the queue of jobs, and returns the names of the files.

    Raises:
        DataFolderLocked: a server, or another run, holds the data folder.
        IndexCorrupt: the backup is not whole.
    """
    manifest = read_manifest(folder)
    check_backup(folder, manifest, (), None)
    lock = FolderLock(root)
    try:
        for file in manifest.others:
            if not re.fullmatch(_OTHER_NAME, file.part):
                raise IndexCorrupt(file.part, "no such file belongs into a data folder; nothing more was restored")
            target = root / file.part
            fresh = target.with_name(f".{target.name}.restored")
            copy_database(folder / file.path, fresh)
            if target.exists():
                fold_log(target)
            fresh.replace(target)
            sync(target.parent)
    finally:
        lock.release()
    return [file.part for file in manifest.others]


def _all_keys(root: Path) -> list[CollectionKey]:
    folders = sorted(one for one in root.glob("*/*") if is_collection(one))
    return [CollectionKey(one.parts[-2], one.parts[-1]) for one in folders]


def _record(root: Path, key: CollectionKey) -> Path:
    return serving_record(root / key.tenant / key.collection)


def _replaced(root: Path, key: CollectionKey) -> Path:
    """Returns where a record takes the place of another; where nothing says where that is, in the folder itself."""
    folder = root / key.tenant / key.collection
    try:
        return serving_record(folder)
    except IndexCorrupt:
        return folder / RECORD


def _copy_collection(root: Path, folder: Path, key: CollectionKey) -> BackedUp:
    source = _record(root, check_key(key))
    if not source.is_file():
        raise CollectionNotFound(key.collection)
    target = folder / "records" / key.tenant / f"{key.collection}.sqlite"
    copy_database(source, target)
    definition, sequence, documents, chunks = _head(target)
    return BackedUp(definition, sequence, documents, chunks, (described(folder, target, _RECORD_PART),))


def _copy_others(root: Path, folder: Path) -> Iterable[BackupFile]:
    for pattern in _OTHER_PARTS:
        for source in sorted(root.glob(pattern)):
            target = folder / "others" / source.relative_to(root)
            copy_database(source, target)
            yield described(folder, target, source.relative_to(root).as_posix())


def _head(path: Path) -> tuple[str, int, int, int]:
    query = "SELECT definition, write_sequence, document_count, chunk_count FROM collection"
    with record_errors(path), closing(sqlite3.connect(path)) as connection:
        definition, sequence, documents, chunks = connection.execute(query).fetchone()
    return definition, sequence, documents, chunks


def _staged(root: Path, folder: Path, backed_up: BackedUp, key: CollectionKey) -> Path:
    """Brings a record beside its place, under its new name, and counts what is in it."""
    fresh = root / key.tenant / f".restored-{key.collection}" / RECORD
    shutil.rmtree(fresh.parent, ignore_errors=True)
    copy_database(folder / backed_up.file(_RECORD_PART).path, fresh)
    newest = _newest_sequence(_replaced(root, key))
    _set_head(fresh, key, max(newest, backed_up.write_sequence, int(time.time())) + 1)
    _check_counts(fresh, backed_up)
    fold_log(fresh)
    sync(fresh)
    return fresh


def _newest_sequence(record: Path) -> int:
    """Returns the write sequence of what is replaced, as far as it can be read."""
    try:
        return _head(record)[1] if record.exists() else 0
    except IndexCorrupt:
        return 0  # the clock is above all that it had


def _set_head(path: Path, key: CollectionKey, sequence: int) -> None:
    with record_errors(path), closing(sqlite3.connect(path, isolation_level=None)) as connection:
        stored = definition_from_json(_head(path)[0])
        definition = definition_to_json(replace(stored, key=key))
        connection.execute("UPDATE collection SET definition = ?, write_sequence = ?", (definition, sequence))


def _check_counts(path: Path, backed_up: BackedUp) -> None:
    """Opens the record as a server would, and counts rows instead of reading what the record says it has."""
    RecordReader(path).close()  # refuses another format
    documents = "SELECT count(*), coalesce(sum(chunk_count), 0) FROM documents WHERE removed_sequence IS NULL"
    chunks = (
        "SELECT count(*) FROM chunks JOIN documents USING (document_row) JOIN vectors USING (chunk_row)"
        " WHERE removed_sequence IS NULL"
    )
    with record_errors(path), closing(sqlite3.connect(path)) as connection:
        found = (*connection.execute(documents).fetchone(), *connection.execute(chunks).fetchone())
    if found != (backed_up.documents, backed_up.chunks, backed_up.chunks):
        wanted = json.dumps([backed_up.documents, backed_up.chunks])
        raise IndexCorrupt(str(path), f"it holds {found[0]} documents and {found[2]} chunks, not {wanted}")


def _put(root: Path, fresh: Path, key: CollectionKey) -> None:
    """Makes the record the collection's; before, its generations go, so none of the old record is ever served."""
    place = _replaced(root, key)
    folder = root / key.tenant / key.collection
    if not folder.exists():
        fresh.parent.rename(folder)
        sync(folder.parent)
        return
    _make_way(place)
    fresh.replace(place)
    sync(place.parent)
    # What was built beside the old record, or served before it, followed that one.
    serving = place.parent.relative_to(folder).as_posix()
    if (homes := Homes(serving)) != Homes() or (folder / HOMES_FILE).exists():
        write_homes(folder, homes)
        sweep_homes(folder)


def _make_way(place: Path) -> None:
    """Removes what belongs to a record that is replaced; one that is broken is replaced all the same."""
    place.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(place.parent / GENERATIONS, ignore_errors=True)
    if place.exists():
        try:
            fold_log(place)
        except IndexCorrupt:
            for left in place.parent.glob(f"{RECORD}-*"):
                left.unlink()
