"""The tables of the job store, how they are opened, and the one place where SQLite's errors are translated.

Counts of a run are kept beside its rows and changed in the same transaction, so a run of a million documents is looked
at as quickly as one of ten.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from indexers.errors import JobStoreUnavailable

FORMAT_VERSION = 1

_TABLES = f"""
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS jobs (
    tenant TEXT NOT NULL,
    name TEXT NOT NULL,
    spec TEXT NOT NULL,
    base_folder TEXT NOT NULL,
    updated_at REAL NOT NULL,
    paused INTEGER NOT NULL,
    PRIMARY KEY (tenant, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS runs (
    run_id TEXT PRIMARY KEY,
    tenant TEXT NOT NULL,
    job TEXT NOT NULL,
    spec TEXT NOT NULL,
    base_folder TEXT NOT NULL,
    request TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at REAL NOT NULL,
    started_at REAL,
    ended_at REAL,
    cancel_requested INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',
    scanned INTEGER NOT NULL DEFAULT 0,
    chunks INTEGER NOT NULL DEFAULT 0,
    tokens INTEGER NOT NULL DEFAULT 0,
    worker TEXT NOT NULL DEFAULT '',
    claimed_until REAL NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    report TEXT NOT NULL DEFAULT ''
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS runs_of_jobs ON runs (tenant, job, run_id);
CREATE INDEX IF NOT EXISTS active_runs ON runs (run_id) WHERE state IN ('queued', 'running');
CREATE TABLE IF NOT EXISTS counts (
    run_id TEXT NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    count INTEGER NOT NULL,
    PRIMARY KEY (run_id, kind, name)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS items (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    run_id TEXT NOT NULL,
    uri TEXT NOT NULL,
    name TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    state TEXT NOT NULL,
    due REAL NOT NULL DEFAULT 0,
    worker TEXT NOT NULL DEFAULT '',
    until REAL NOT NULL DEFAULT 0,
    fence INTEGER NOT NULL DEFAULT 0,
    attempt INTEGER NOT NULL DEFAULT 0,
    attempts INTEGER NOT NULL DEFAULT 0,
    reason TEXT NOT NULL DEFAULT '',
    kind TEXT NOT NULL DEFAULT '',
    UNIQUE (run_id, uri)
);
CREATE INDEX IF NOT EXISTS items_by_state ON items (run_id, state, number);
CREATE INDEX IF NOT EXISTS held_items ON items (worker) WHERE worker <> '';
CREATE TABLE IF NOT EXISTS documents (
    run_id TEXT NOT NULL,
    document_id TEXT NOT NULL,
    item_uri TEXT NOT NULL,
    state TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    chunk_count INTEGER NOT NULL,
    token_count INTEGER NOT NULL,
    attempt INTEGER NOT NULL,
    reason TEXT NOT NULL,
    kind TEXT NOT NULL,
    warnings TEXT NOT NULL,
    PRIMARY KEY (run_id, document_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS documents_by_state ON documents (run_id, state, document_id);
CREATE TABLE IF NOT EXISTS dead_letters (
    tenant TEXT NOT NULL,
    job TEXT NOT NULL,
    item_uri TEXT NOT NULL,
    document_id TEXT NOT NULL,
    run_id TEXT NOT NULL,
    name TEXT NOT NULL,
    reason TEXT NOT NULL,
    kind TEXT NOT NULL,
    attempt INTEGER NOT NULL,
    failed_at REAL NOT NULL,
    item_name TEXT NOT NULL,
    fingerprint TEXT NOT NULL,
    size_bytes INTEGER NOT NULL,
    PRIMARY KEY (tenant, job, item_uri, document_id)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS dead_documents ON dead_letters (tenant, job, document_id);
CREATE TABLE IF NOT EXISTS remembered (
    tenant TEXT NOT NULL,
    job TEXT NOT NULL,
    name TEXT NOT NULL,
    value BLOB NOT NULL,
    PRIMARY KEY (tenant, job, name)
) WITHOUT ROWID;
PRAGMA user_version = {FORMAT_VERSION};
COMMIT;
"""


def open_database(path: Path) -> sqlite3.Connection:
    """Opens the file, making it when it is not there; it may be used from any one thread at a time.

    A commit does not wait for the disk: after a power cut the last ones may be missing, as a whole. The index is what
    must not forget; what the queue forgets is found out again.

    Raises:
        JobStoreUnavailable: it cannot be opened, or is of another format.
    """
    with store_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=20.0)
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            found = connection.execute("PRAGMA user_version").fetchone()[0]
            if found not in (0, FORMAT_VERSION):
                reason = f"format {found} is not {FORMAT_VERSION}; move the file away to begin with an empty queue"
                raise JobStoreUnavailable(str(path), reason)
            if found == 0:
                connection.executescript(_TABLES)
        except BaseException:
            connection.close()
            raise
        return connection


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Translates what SQLite raises."""
    try:
        yield
    except (sqlite3.Error, OSError) as error:
        raise JobStoreUnavailable(str(path), str(error)) from error


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Runs the block as one write transaction: all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
