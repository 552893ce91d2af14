"""One record follows another: it holds the same documents as of the same write sequences, encoded by another model.

A document says by its sequence which state of it is there, so what is there already costs nothing, and conditions on a
write sequence hold in the copy as they do in the original.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from indexers.record_read import RecordReader, document_from_row
from indexers.record_schema import definition_from_json, definition_to_json, record_errors, transaction
from indexers.record_write import RecordWriter
from indexers.types import CollectionDefinition, Counts, Document, EncodedDocument


@dataclass(frozen=True, slots=True)
class Standing:
    """How a document stands in a record."""

    sequence: int  # of the write that put it there
    text_length: int  # code points


@dataclass(frozen=True, slots=True)
class Version:
    """A document as it stands in a record."""

    document: Document
    sequence: int  # of the write that put it there
    indexed_at: str


class FollowedRecord(RecordReader):
    """The record that is followed; a server may be writing it. Used by one thread at a time."""

    def ids(self, after: str, limit: int) -> list[str]:
        """Returns up to so many greater ids, in order."""
        return [one for (one,) in self._rows(_IDS, {"after": after, "limit": limit})]

    def touched(self, since: int) -> list[str]:
        """Returns the ids that were written or deleted after a write sequence, by id."""
        return [one for (one,) in self._rows(_TOUCHED, {"since": since})]

    def standing(self, document_ids: Sequence[str]) -> dict[str, Standing]:
        """Returns how each document stands that is there."""
        rows = self._rows(_STANDING, {"ids": json.dumps(list(document_ids))})
        return {name: Standing(*values) for name, *values in rows}

    def versions(self, document_ids: Sequence[str]) -> list[Version]:
        """Returns the documents that are there."""
        rows = self._rows(_VERSIONS, {"ids": json.dumps(list(document_ids))})
        return [Version(document_from_row(row), added, indexed_at) for added, indexed_at, *row in rows]

    def tombstones(self, since: int) -> list[tuple[str, int, float]]:
        """Returns what was deleted after a write sequence: id, sequence, time."""
        return self._rows(_TOMBSTONES, {"since": since})


class RecordMirror(RecordWriter):
    """Writes the record that follows."""

    def put(self, documents: Sequence[tuple[Version, EncodedDocument]], gone: Sequence[str]) -> None:
        """Puts documents in place as of their own sequences, and takes others out, in one step.

        Rows that leave get a sequence of this record's own, above all before it, so that a generation that was built
        in between knows that they have left.
        """
        with record_errors(self._path), transaction(self._connection):
            newest = max((version.sequence for version, _ in documents), default=0)
            sequence = max(self._head()[0] + 1, newest)
            ids = [*gone, *(version.document.document_id for version, _ in documents)]
            removed = [self._remove(one, sequence) for one in ids]
            added = [self._insert(encoded, version.sequence, version.indexed_at) for version, encoded in documents]
            self._finish(sequence, added, removed)

    def take_over(self, tombstones: Sequence[tuple[str, int, float]], definition: CollectionDefinition) -> None:
        """Takes over what else belongs to the collection; what was declared meanwhile is coerced.

        Raises:
            TypeMismatch: see `redefine`.
        """
        with record_errors(self._path), transaction(self._connection):
            self._connection.executemany("INSERT OR REPLACE INTO tombstones VALUES (?, ?, ?)", tombstones)
            [(stored,)] = self._connection.execute("SELECT definition FROM collection").fetchall()
            if definition_from_json(stored).fields != definition.fields:
                self._coerce_stored(dict(definition.fields))
            self._connection.execute("UPDATE collection SET definition = ?", (definition_to_json(definition),))

    def rise_above(self, sequence: int) -> None:
        """Raises the write sequence above another one."""
        with record_errors(self._path), transaction(self._connection):
            above = max(self._head()[0], sequence) + 1
            self._connection.execute("UPDATE collection SET write_sequence = ?", (above,))

    def counted(self) -> Counts:
        """Returns how many documents and chunks there are, counted and not remembered."""
        with record_errors(self._path):
            return Counts(*self._connection.execute(_COUNTED).fetchone())


_IDS = """
SELECT document_id FROM documents
WHERE document_id > :after AND removed_sequence IS NULL ORDER BY document_id LIMIT :limit
"""
_STANDING = """
SELECT document_id, added_sequence, text_length FROM documents
WHERE document_id IN (SELECT value FROM json_each(:ids)) AND removed_sequence IS NULL
"""
_TOUCHED = """
SELECT document_id FROM documents WHERE added_sequence > :since
UNION SELECT document_id FROM tombstones WHERE sequence > :since ORDER BY document_id
"""
_VERSIONS = """
SELECT added_sequence, indexed_at, document_id, title, text, format, metadata, source_uri, owner, notes
FROM documents JOIN texts USING (document_row) LEFT JOIN notes USING (document_row)
WHERE document_id IN (SELECT value FROM json_each(:ids)) AND removed_sequence IS NULL
"""
_TOMBSTONES = "SELECT document_id, sequence, deleted_at FROM tombstones WHERE sequence > :since"
_COUNTED = """
SELECT count(DISTINCT document_row), count(chunk_row)
FROM documents LEFT JOIN chunks USING (document_row) WHERE removed_sequence IS NULL
"""
