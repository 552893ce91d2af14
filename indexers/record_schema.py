"""The record's tables, and how a connection to it is opened.

A row of `documents` is one version of a document: it lives from `added_sequence` until `removed_sequence`. Removed
versions stay until a generation without them is published, so a generation can be built from one consistent state while
writes go on. Chunks share the life of their document's row, and a later write's chunks always have higher rows. Texts,
vectors and token codes have tables of their own, so that reading metadata or a passage does not page over them.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path

from indexers.errors import IndexCorrupt
from indexers.types import CollectionDefinition, CollectionKey, FieldType

FORMAT_VERSION = 4

_TABLES = """
CREATE TABLE collection (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    definition TEXT NOT NULL,
    write_sequence INTEGER NOT NULL,
    document_count INTEGER NOT NULL,
    chunk_count INTEGER NOT NULL
);
CREATE TABLE documents (
    document_row INTEGER PRIMARY KEY AUTOINCREMENT,
    document_id TEXT NOT NULL,
    added_sequence INTEGER NOT NULL,
    removed_sequence INTEGER,
    fingerprint TEXT NOT NULL,
    title TEXT NOT NULL,
    format TEXT NOT NULL,
    source_uri TEXT NOT NULL,
    indexed_at TEXT NOT NULL,
    chunk_count INTEGER NOT NULL,
    text_length INTEGER NOT NULL,
    metadata TEXT NOT NULL,
    owner TEXT NOT NULL DEFAULT ''
);
CREATE TABLE texts (
    document_row INTEGER PRIMARY KEY,
    text TEXT NOT NULL
);
CREATE UNIQUE INDEX live_documents ON documents (document_id) WHERE removed_sequence IS NULL;
CREATE INDEX removed_documents ON documents (removed_sequence) WHERE removed_sequence IS NOT NULL;
CREATE INDEX documents_by_id ON documents (document_id, added_sequence);
CREATE TABLE chunks (
    chunk_row INTEGER PRIMARY KEY AUTOINCREMENT,
    document_row INTEGER NOT NULL,
    chunk_id BLOB NOT NULL,
    ordinal INTEGER NOT NULL,
    start INTEGER NOT NULL,
    end INTEGER NOT NULL,
    page INTEGER NOT NULL,
    heading_path TEXT NOT NULL,
    text TEXT NOT NULL,
    token_count INTEGER NOT NULL,
    header TEXT NOT NULL,
    header_token_count INTEGER NOT NULL,
    notes TEXT NOT NULL DEFAULT ''
);
CREATE INDEX chunks_by_id ON chunks (chunk_id);
CREATE INDEX chunks_by_document ON chunks (document_row);
CREATE TABLE vectors (
    chunk_row INTEGER PRIMARY KEY,
    dense BLOB NOT NULL,
    terms BLOB NOT NULL
);
CREATE TABLE token_codes (
    chunk_row INTEGER PRIMARY KEY,
    codes BLOB NOT NULL
);
"""

# What format 4 has besides: owners, notes, and tombstones, which say when an id was deleted last.
_SINCE_4 = """
CREATE INDEX owned_documents ON documents (owner, document_id) WHERE removed_sequence IS NULL AND owner <> '';
CREATE TABLE notes (
    document_row INTEGER PRIMARY KEY,
    notes TEXT NOT NULL
);
CREATE TABLE tombstones (
    document_id TEXT PRIMARY KEY,
    sequence INTEGER NOT NULL,
    deleted_at REAL NOT NULL
) WITHOUT ROWID;
CREATE INDEX tombstones_by_time ON tombstones (deleted_at);
"""
_FROM_3 = f"""
BEGIN IMMEDIATE;
ALTER TABLE documents ADD COLUMN owner TEXT NOT NULL DEFAULT '';
ALTER TABLE chunks ADD COLUMN notes TEXT NOT NULL DEFAULT '';
{_SINCE_4}
PRAGMA user_version = 4;
COMMIT;
"""


def create_record(path: Path, definition: CollectionDefinition) -> None:
    """Makes a new, empty record file that survives a power cut."""
    with record_errors(path), closing(_connect(path)) as connection:
        _set_up(connection)
        connection.executescript(_TABLES + _SINCE_4)
        connection.execute("INSERT INTO collection VALUES (1, ?, 0, 0, 0)", (definition_to_json(definition),))
        connection.execute(f"PRAGMA user_version = {FORMAT_VERSION}")


def open_connection(path: Path, *, read_only: bool) -> sqlite3.Connection:
    """Opens a connection to an existing record; it may be used from any one thread at a time.

    Raises:
        IndexCorrupt: the file is missing, broken or of another format.
    """
    with record_errors(path):
        if not path.is_file():
            raise IndexCorrupt(str(path), "the record is missing; restore it from a backup or delete the collection")
        with _closed_on_failure(_connect(path)) as connection:
            _set_up(connection)
            found = _upgraded(connection)
            if found != FORMAT_VERSION:
                reason = f"format {found} is not {FORMAT_VERSION}; index the collection again with this version"
                raise IndexCorrupt(str(path), reason)
            if read_only:
                connection.execute("PRAGMA query_only = ON")
            return connection


@contextmanager
def record_errors(path: Path) -> Iterator[None]:
    """Translates what SQLite raises, in one place."""
    try:
        yield
    except sqlite3.Error as error:
        raise IndexCorrupt(str(path), f"{error}; check the disk, restore the record or index again") from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Runs the block as one write transaction: all of it, durable, or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


def definition_to_json(definition: CollectionDefinition) -> str:
    """Writes a definition for the record."""
    return json.dumps(
        {
            "tenant": definition.key.tenant,
            "collection": definition.key.collection,
            "fields": {name: declared.value for name, declared in definition.fields.items()},
            "description": definition.description,
            "dense_model_id": definition.dense_model_id,
            "dense_revision": definition.dense_revision,
            "dim": definition.dim,
            "created_at": definition.created_at.isoformat(),
            "code_bytes": definition.code_bytes,
            "sparse_model_id": definition.sparse_model_id,
            "sparse_revision": definition.sparse_revision,
            "dense_source": definition.dense_source,
        }
    )


def definition_from_json(text: str) -> CollectionDefinition:
    """Reads what `definition_to_json` wrote."""
    stored = json.loads(text)
    return CollectionDefinition(
        key=CollectionKey(stored["tenant"], stored["collection"]),
        fields={name: FieldType(declared) for name, declared in stored["fields"].items()},
        description=stored["description"],
        dense_model_id=stored["dense_model_id"],
        dense_revision=stored["dense_revision"],
        dim=stored["dim"],
        created_at=datetime.fromisoformat(stored["created_at"]),
        code_bytes=stored.get("code_bytes", 0),  # a server may hold definitions from before there were codes
        sparse_model_id=stored.get("sparse_model_id", ""),
        sparse_revision=stored.get("sparse_revision", ""),
        dense_source=stored.get("dense_source", ""),
    )


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=10.0)


def _upgraded(connection: sqlite3.Connection) -> int:
    """Brings a record of the format before to this one, whole or not at all, and returns its format."""
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if found != 3:
        return found
    try:
        connection.executescript(_FROM_3)
    except sqlite3.Error:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        # Another connection may have been quicker.
        if connection.execute("PRAGMA user_version").fetchone()[0] != FORMAT_VERSION:
            raise
    return FORMAT_VERSION


def _set_up(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("PRAGMA mmap_size = 268435456")


@contextmanager
def _closed_on_failure(connection: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Closes a connection whose file turns out to be unusable."""
    try:
        yield connection
    except BaseException:
        connection.close()
        raise
