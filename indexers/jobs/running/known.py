"""What earlier runs on this machine found out, so that an unchanged document costs neither parsing nor a model.

A memory, not the truth: whatever it says is compared with what the index holds now. Losing it costs time.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

FORMAT_VERSION = 1
_TABLES = f"""
CREATE TABLE documents (document_id TEXT PRIMARY KEY, digest TEXT NOT NULL, fingerprint TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE signatures (document_id TEXT PRIMARY KEY, signature BLOB NOT NULL) WITHOUT ROWID;
CREATE TABLE items (uri TEXT PRIMARY KEY, fingerprint TEXT NOT NULL, documents TEXT NOT NULL) WITHOUT ROWID;
PRAGMA user_version = {FORMAT_VERSION};
"""
_MANY = 5_000  # documents of an item; above, reading it again is no more work than comparing the list


@dataclass(frozen=True, slots=True)
class KnownDocument:
    """A document as it came out of the parser, and as it was stored then."""

    digest: str  # of the parsed and mapped document, and of everything that makes the stored one of it
    fingerprint: str  # that it was stored with


class Known:
    """One file, used from one thread at a time."""

    def __init__(self, path: Path, shape: str) -> None:
        """Opens the file; one that cannot be read is thrown away.

        `shape` names everything that makes documents of an item besides its content: what was found out under another
        one is of no use.
        """
        self._shape = shape
        try:
            self._connection = _opened(path)
        except sqlite3.Error:
            for left in (path, path.with_name(f"{path.name}-wal"), path.with_name(f"{path.name}-shm")):
                left.unlink(missing_ok=True)
            self._connection = _opened(path)

    def documents(self, document_ids: Sequence[str]) -> dict[str, KnownDocument]:
        """Returns what is known of the documents."""
        query = (
            "SELECT document_id, digest, fingerprint FROM documents WHERE document_id IN"
            " (SELECT value FROM json_each(?))"
        )
        found = self._connection.execute(query, (json.dumps(list(document_ids)),)).fetchall()
        return {name: KnownDocument(digest, fingerprint) for name, digest, fingerprint in found}

    def item(self, uri: str, fingerprint: str) -> Mapping[str, str] | None:
        """Returns the ids and stored fingerprints of an item's documents; None when it has changed or is not known."""
        row = self._connection.execute("SELECT fingerprint, documents FROM items WHERE uri = ?", (uri,)).fetchone()
        if not fingerprint or row is None or row[0] != self._shaped(fingerprint):
            return None
        found: dict[str, str] = json.loads(row[1])
        return found

    def keep_documents(self, documents: Mapping[str, KnownDocument]) -> None:
        """Remembers documents that were written or found unchanged."""
        rows = [(name, one.digest, one.fingerprint) for name, one in documents.items()]
        self._write("INSERT OR REPLACE INTO documents VALUES (?, ?, ?)", rows)

    def keep_item(self, uri: str, fingerprint: str, documents: Mapping[str, str]) -> None:
        """Remembers an item all of whose documents are stored; with very many documents it is forgotten."""
        if fingerprint and 0 < len(documents) <= _MANY:
            self._write(
                "INSERT OR REPLACE INTO items VALUES (?, ?, ?)",
                [(uri, self._shaped(fingerprint), json.dumps(documents))],
            )
        else:
            self._write("DELETE FROM items WHERE uri = ?", [(uri,)])

    def forget(self, document_ids: Iterable[str]) -> None:
        """Forgets documents that were deleted."""
        gone = [(one,) for one in document_ids]
        self._write("DELETE FROM documents WHERE document_id = ?", gone)
        self._write("DELETE FROM signatures WHERE document_id = ?", gone)

    def signatures(self, limit: int) -> list[tuple[str, bytes]]:
        """Returns the signatures of so many documents at most, by which near duplicates are found."""
        return self._connection.execute("SELECT document_id, signature FROM signatures LIMIT ?", (limit,)).fetchall()

    def keep_signatures(self, signatures: Sequence[tuple[str, bytes]]) -> None:
        """Remembers signatures of documents that were written."""
        self._write("INSERT OR REPLACE INTO signatures VALUES (?, ?)", signatures)

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def _shaped(self, fingerprint: str) -> str:
        return f"{fingerprint}/{self._shape}"

    def _write(self, statement: str, rows: Sequence[tuple[str | bytes, ...]]) -> None:
        # Another worker may hold the file for a moment; what is not remembered is found out again.
        with suppress(sqlite3.OperationalError):
            self._connection.executemany(statement, rows)
            self._connection.commit()


def _opened(path: Path) -> sqlite3.Connection:
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path, check_same_thread=False, timeout=2.0)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = OFF")
        found = connection.execute("PRAGMA user_version").fetchone()[0]
        if found not in (0, FORMAT_VERSION):
            raise sqlite3.DatabaseError("another format")
        if found == 0:
            connection.executescript(_TABLES)
    except BaseException:
        connection.close()
        raise
    return connection
