"""Copies of SQLite files that another process is writing: one consistent state, and nobody waits."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from indexers.errors import IndexCorrupt
from indexers.generation import sync
from indexers.record_schema import record_errors


def copy_database(source: Path, target: Path) -> None:
    """Copies the last committed state into a new file of its own, without a write-ahead log beside it.

    All of it is one read transaction, which holds up no writer, since the file keeps a write-ahead log.

    Raises:
        IndexCorrupt: the file cannot be read, or the copy is not sound.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with record_errors(source), closing(_opened(source)) as reading, closing(sqlite3.connect(target)) as writing:
        reading.backup(writing, pages=-1)
        writing.execute("PRAGMA journal_mode = DELETE")
        [(verdict,)] = writing.execute("PRAGMA quick_check(1)").fetchall()
    if verdict != "ok":
        raise IndexCorrupt(str(source), f"the copy is not sound: {verdict}; check the disk")
    sync(target)
    sync(target.parent)


def fold_log(path: Path) -> None:
    """Brings everything into the file itself, so that it can be replaced by another; nobody may have it open."""
    with record_errors(path), closing(_opened(path)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        connection.execute("PRAGMA journal_mode = DELETE")


def _opened(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise IndexCorrupt(str(path), "the file is missing")
    return sqlite3.connect(path, isolation_level=None, timeout=10.0)
