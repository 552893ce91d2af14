"""The write half of the record: every call is one transaction that also raises the write sequence.

Used from the collection's writer thread alone. A crash at any point leaves the state before the call or after it.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import time
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from indexers.errors import TypeMismatch
from indexers.notes import notes_to_json
from indexers.record_schema import (
    definition_from_json,
    definition_to_json,
    open_connection,
    record_errors,
    transaction,
)
from indexers.schema import coerce_metadata, metadata_from_json, metadata_to_json
from indexers.term_blob import pack_terms
from indexers.types import CollectionDefinition, Counts, EncodedDocument, FieldType, Metadata


@dataclass(frozen=True, slots=True)
class Written:
    """What one write call did."""

    sequence: int
    added_rows: NDArray[np.int64]  # [chunks], in the order of the documents' chunks
    removed_rows: NDArray[np.int64]  # [chunks that were live before]
    removed_documents: int
    counts: Counts  # after the call
    superseded: frozenset[str] = frozenset()  # documents that were left alone


class RecordWriter:
    """Writes to one record file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = open_connection(path, read_only=False)

    def replace(self, documents: Sequence[EncodedDocument], since: int | None = None) -> Written:
        """Puts the documents in the place of whatever stands under their ids; they must be valid already.

        With `since`, those that were written or deleted after that sequence are left alone.
        """
        with record_errors(self._path), transaction(self._connection):
            ids = [document.document.document_id for document in documents]
            superseded = frozenset() if since is None else self._changed_after(since, ids)
            documents = [one for one in documents if one.document.document_id not in superseded]
            if not documents:
                return self._nothing(superseded)
            sequence = self._head()[0] + 1
            removed = [self._remove(document.document.document_id, sequence) for document in documents]
            added = [self._insert(document, sequence) for document in documents]
            return replace(self._finish(sequence, added, removed), superseded=superseded)

    def delete(self, document_ids: Sequence[str], since: int | None = None) -> Written:
        """Removes documents by id and leaves tombstones, also for ids that are not there.

        With `since`, documents that were written after that sequence stay, without a tombstone.
        """
        with record_errors(self._path), transaction(self._connection):
            kept = frozenset() if since is None else self._written_after(since, document_ids)
            return self._delete([one for one in document_ids if one not in kept])

    def delete_where(self, passes: Callable[[Metadata], bool]) -> Written:
        """Removes all documents whose metadata passes, found and removed in one transaction."""
        with record_errors(self._path), transaction(self._connection):
            live = self._connection.execute(
                "SELECT document_id, metadata FROM documents WHERE removed_sequence IS NULL"
            )
            return self._delete([one for one, metadata in live if passes(metadata_from_json(metadata))])

    def redefine(self, fields: dict[str, FieldType], description: str) -> CollectionDefinition:
        """Changes the definition and coerces the stored metadata to newly declared fields.

        Raises:
            TypeMismatch: a stored value cannot become the new type; names its document; nothing was changed.
        """
        with record_errors(self._path), transaction(self._connection):
            stored = self._connection.execute("SELECT definition FROM collection").fetchone()[0]
            definition = replace(definition_from_json(stored), fields=fields, description=description)
            self._coerce_stored(fields)
            self._connection.execute("UPDATE collection SET definition = ?", (definition_to_json(definition),))
            return definition

    def purge(self, sequence: int, document_limit: int) -> int:
        """Forgets up to so many versions that were removed at or before the sequence; returns how many."""
        with record_errors(self._path), transaction(self._connection):
            rows = self._connection.execute(
                "SELECT document_row FROM documents WHERE removed_sequence <= ? LIMIT ?", (sequence, document_limit)
            ).fetchall()
            for forget in _FORGET:
                self._connection.executemany(forget, rows)
            return len(rows)

    def close(self) -> None:
        """Closes the file; folds the write-ahead log into it."""
        self._connection.close()

    def _head(self) -> tuple[int, int, int]:
        query = "SELECT write_sequence, document_count, chunk_count FROM collection"
        sequence, documents, chunks = self._connection.execute(query).fetchone()
        return sequence, documents, chunks

    def _delete(self, document_ids: Sequence[str]) -> Written:
        if not document_ids:
            return self._nothing()
        sequence = self._head()[0] + 1
        self._connection.execute("DELETE FROM tombstones WHERE deleted_at < ?", (time() - _TOMBSTONE_S,))
        self._connection.executemany(
            "INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", [(one, sequence, time()) for one in document_ids]
        )
        return self._finish(sequence, [], [self._remove(one, sequence) for one in document_ids])

    def _nothing(self, superseded: frozenset[str] = frozenset()) -> Written:
        sequence, documents, chunks = self._head()
        return Written(sequence, _NO_ROWS, _NO_ROWS, 0, Counts(documents, chunks), superseded)

    def _written_after(self, since: int, document_ids: Sequence[str]) -> frozenset[str]:
        return self._ids(_WRITTEN_AFTER, since, document_ids)

    def _changed_after(self, since: int, document_ids: Sequence[str]) -> frozenset[str]:
        return self._written_after(since, document_ids) | self._ids(_DELETED_AFTER, since, document_ids)

    def _ids(self, query: str, since: int, document_ids: Sequence[str]) -> frozenset[str]:
        found = self._connection.execute(query, (json.dumps(list(document_ids)), since))
        return frozenset(one for (one,) in found)

    def _finish(self, sequence: int, added: list[list[int]], removed: list[list[int] | None]) -> Written:
        added_rows = np.array([row for rows in added for row in rows], dtype=np.int64)
        removed_rows = np.array([row for rows in removed for row in rows or ()], dtype=np.int64)
        removed_documents = sum(rows is not None for rows in removed)
        counts = self._connection.execute(
            "UPDATE collection SET write_sequence = ?, document_count = document_count + ?,"
            " chunk_count = chunk_count + ? RETURNING document_count, chunk_count",
            (sequence, len(added) - removed_documents, len(added_rows) - len(removed_rows)),
        ).fetchall()[0]
        return Written(sequence, added_rows, removed_rows, removed_documents, Counts(*counts))

    def _remove(self, document_id: str, sequence: int) -> list[int] | None:
        """Ends the life of the document's live version; gives its chunk rows, None when there was none."""
        found = self._connection.execute(
            "UPDATE documents SET removed_sequence = ? WHERE document_id = ? AND removed_sequence IS NULL"
            " RETURNING document_row",
            (sequence, document_id),
        ).fetchall()
        if not found:
            return None
        chunks = self._connection.execute("SELECT chunk_row FROM chunks WHERE document_row = ?", found[0])
        return [row for (row,) in chunks.fetchall()]

    def _insert(self, encoded: EncodedDocument, sequence: int, indexed_at: str = "") -> list[int]:
        document = encoded.document
        values = (
            document.document_id,
            sequence,
            encoded.fingerprint,
            document.title,
            document.format.value,
            document.source_uri,
            indexed_at or datetime.now(UTC).isoformat(),
            len(encoded.chunks),
            len(document.text),
            metadata_to_json(document.metadata),
            document.owner,
        )
        row = self._connection.execute(
            "INSERT INTO documents (document_id, added_sequence, fingerprint, title, format, source_uri, indexed_at,"
            " chunk_count, text_length, metadata, owner) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            values,
        ).lastrowid
        self._connection.execute("INSERT INTO texts VALUES (?, ?)", (row, document.text))
        if document.notes:
            self._connection.execute("INSERT INTO notes VALUES (?, ?)", (row, notes_to_json(document.notes)))
        return _insert_chunks(self._connection, encoded, row)

    def _coerce_stored(self, fields: dict[str, FieldType]) -> None:
        stored = self._connection.execute("SELECT document_row, document_id, metadata FROM documents").fetchall()
        for row, document_id, text in stored:
            try:
                coerced = metadata_to_json(coerce_metadata(metadata_from_json(text), fields))
            except TypeMismatch as error:
                message = f"document {document_id!r} stands against the new schema: {error}"
                raise TypeMismatch(error.field, error.bound, message) from error
            if coerced != text:
                self._connection.execute("UPDATE documents SET metadata = ? WHERE document_row = ?", (coerced, row))


_NO_ROWS: NDArray[np.int64] = np.empty(0, dtype=np.int64)

_TOMBSTONE_S = 7 * 86_400.0  # far longer than a worker can hold on to what it has read

_WRITTEN_AFTER = """
SELECT document_id FROM documents
WHERE document_id IN (SELECT value FROM json_each(?)) AND removed_sequence IS NULL AND added_sequence > ?
"""
_DELETED_AFTER = """
SELECT document_id FROM tombstones WHERE document_id IN (SELECT value FROM json_each(?)) AND sequence > ?
"""

_FORGET = (
    "DELETE FROM token_codes WHERE chunk_row IN (SELECT chunk_row FROM chunks WHERE document_row = ?)",
    "DELETE FROM vectors WHERE chunk_row IN (SELECT chunk_row FROM chunks WHERE document_row = ?)",
    "DELETE FROM chunks WHERE document_row = ?",
    "DELETE FROM texts WHERE document_row = ?",
    "DELETE FROM notes WHERE document_row = ?",
    "DELETE FROM documents WHERE document_row = ?",
)


def _insert_chunks(connection: sqlite3.Connection, encoded: EncodedDocument, document_row: int | None) -> list[int]:
    rows = []
    for one in encoded.chunks:
        chunk = one.chunk
        path = json.dumps(chunk.heading_path, ensure_ascii=False)
        row = connection.execute(
            "INSERT INTO chunks (document_row, chunk_id, ordinal, start, end, page, heading_path, text,"
            " token_count, header, header_token_count, notes) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                document_row,
                UUID(chunk.chunk_id).bytes,
                chunk.ordinal,
                chunk.start,
                chunk.end,
                chunk.page,
                path,
                chunk.text,
                chunk.token_count,
                chunk.header,
                chunk.header_token_count,
                chunk.notes,
            ),
        ).lastrowid
        connection.execute(
            "INSERT INTO vectors VALUES (?, ?, ?)", (row, one.dense.astype("<f4").tobytes(), pack_terms(one.terms))
        )
        if one.codes is not None and len(one.codes):
            connection.execute("INSERT INTO token_codes VALUES (?, ?)", (row, one.codes.tobytes()))
        rows.append(row or 0)
    return rows
