"""The read half of the record. Every read names the write sequence whose state it wants.

The serving state in memory may be a moment behind the file: passages read at the sequence that was searched never mix
two versions of a document (case JOB-02).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from encoders.types import TermCounts
from indexers.notes import notes_from_json
from indexers.record_schema import definition_from_json, open_connection, record_errors
from indexers.schema import metadata_from_json
from indexers.term_blob import unpack_terms
from indexers.types import (
    CollectionDefinition,
    Counts,
    Document,
    DocumentSummary,
    Metadata,
    Passage,
    StoredDocument,
    TextFormat,
)

_REMEMBERED = 1024  # texts of headings and of metadata: passages come again from one request to the next


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as shards are made of it."""

    row: int
    chunk_id: bytes  # 16 bytes
    document_row: int
    metadata: Metadata  # the same object for all chunks of one document
    dense: NDArray[np.float32]  # [dim]
    terms: TermCounts
    codes: NDArray[np.uint8] | None  # [tokens * code_bytes]; None without any


@dataclass(frozen=True, slots=True)
class RecordHead:
    """Where the last committed write has left the record."""

    sequence: int
    counts: Counts
    last_row: int  # no chunk of this state has a higher row, every later one has


def read_definition(path: Path) -> CollectionDefinition:
    """Reads what the record of a collection promises. Raises: IndexCorrupt."""
    reader = RecordReader(path)
    try:
        return reader.definition()
    finally:
        reader.close()


class RecordReader:
    """Reads one record file; used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._connection = open_connection(path, read_only=True)

    def definition(self) -> CollectionDefinition:
        """Returns the stored definition."""
        return definition_from_json(self._rows("SELECT definition FROM collection")[0][0])

    def head(self) -> RecordHead:
        """Returns where the last committed write has left the record."""
        sequence, documents, chunks, last_row = self._rows(_HEAD)[0]
        return RecordHead(sequence, Counts(documents, chunks), last_row)

    def passages(self, chunk_ids: Sequence[str], sequence: int) -> list[Passage]:
        """Returns the passages in the order asked for; what is not live at the sequence is left out."""
        found: dict[str, Passage] = {}
        for start in range(0, len(chunk_ids), _IDS_A_READ):
            asked = [bytes.fromhex(one.replace("-", "")) for one in chunk_ids[start : start + _IDS_A_READ]]
            query = _PASSAGES.format(places=",".join("?" * len(asked)))
            for row in self._rows(query, (*asked, sequence, sequence, sequence)):
                passage = _passage(row)
                found.setdefault(passage.chunk_id, passage)
        return [found[one] for one in chunk_ids if one in found]

    def document(self, document_id: str, sequence: int) -> Document | None:
        """Returns the document as it was at the sequence, None when there was none."""
        rows = self._rows(_DOCUMENT, {"id": document_id, "sequence": sequence})
        return document_from_row(rows[0]) if rows else None

    def summaries(self, after: str, limit: int, sequence: int) -> list[DocumentSummary]:
        """Returns documents whose id is greater, ordered by id."""
        rows = self._rows(_SUMMARIES, {"after": after, "limit": limit, "sequence": sequence})
        return [_summary(row) for row in rows]

    def stored(self, document_ids: Sequence[str], sequence: int) -> dict[str, StoredDocument]:
        """Returns what is stored of each document that is there."""
        rows = self._rows(_STORED, {"ids": json.dumps(list(document_ids)), "sequence": sequence})
        return {name: StoredDocument(*values) for name, *values in rows}

    def owned(self, owner: str, after: str, limit: int) -> list[tuple[str, str]]:
        """Returns (id, source URI) of the owner's documents with greater ids, by id, as they are now."""
        return self._rows(_OWNED, {"owner": owner, "after": after, "limit": limit})

    def chunk_ids(self, document_id: str, sequence: int) -> list[str]:
        """Returns the ids of the document's chunks in order."""
        rows = self._rows(_CHUNK_IDS, {"id": document_id, "sequence": sequence})
        return [_written_id(one.hex()) for (one,) in rows]

    def metadata(self, sequence: int) -> Iterator[tuple[Metadata, int]]:
        """Streams each document's metadata and how many chunks it has."""
        with record_errors(self._path):
            for text, chunk_count in self._connection.execute(_METADATA, {"sequence": sequence}):
                yield metadata_from_json(text), chunk_count

    def chunks(self, sequence: int, after_row: int, batch: int) -> Iterator[list[StoredChunk]]:
        """Streams what is live at the sequence and stands after a row, in row order, in short reads."""
        while rows := self._rows(_CHUNKS, {"last": after_row, "sequence": sequence, "batch": batch}):
            yield _stored_chunks(rows)
            after_row = rows[-1][0]

    def terms(self, sequence: int, batch: int) -> Iterator[TermCounts]:
        """Streams the term counts of every chunk that is live at the sequence."""
        last = 0
        while rows := self._rows(_TERMS, {"last": last, "sequence": sequence, "batch": batch}):
            yield from (unpack_terms(blob) for _, blob in rows)
            last = rows[-1][0]

    def sample_texts(self, count: int) -> list[str]:
        """Returns the texts of up to so many chunks that are there now, chosen by chance."""
        return [text for (text,) in self._rows(_SAMPLE_TEXTS, (count,))]

    def removed_rows(self, after_sequence: int, sequence: int) -> NDArray[np.int64]:
        """Returns the chunk rows that were live at the first sequence and no longer are at the second."""
        rows = self._rows(_REMOVED, {"after": after_sequence, "sequence": sequence})
        return np.array([row for (row,) in rows], dtype=np.int64)

    def close(self) -> None:
        """Closes the file."""
        self._connection.close()

    def _rows(self, query: str, values: Mapping[str, object] | tuple[object, ...] = ()) -> list[_Row]:
        with record_errors(self._path):
            return self._connection.execute(query, values).fetchall()


_IDS_A_READ = 500

_Row: TypeAlias = "tuple[Any, ...]"

_HEAD = """
SELECT write_sequence, document_count, chunk_count, (SELECT coalesce(max(chunk_row), 0) FROM chunks) FROM collection
"""
_PASSAGES = """
SELECT chunk_id, document_id, title, heading_path, text, start, end, ordinal, page, metadata, source_uri,
    token_count, header, header_token_count, chunk_row
FROM chunks JOIN documents USING (document_row)
WHERE chunk_id IN ({places}) AND added_sequence <= ? AND ifnull(removed_sequence, ? + 1) > ?
"""
_DOCUMENT = """
SELECT document_id, title, text, format, metadata, source_uri, owner, notes
FROM documents JOIN texts USING (document_row) LEFT JOIN notes USING (document_row)
WHERE document_id = :id AND added_sequence <= :sequence AND ifnull(removed_sequence, :sequence + 1) > :sequence
"""
_SUMMARIES = """
SELECT document_id, title, metadata, fingerprint, chunk_count, text_length, source_uri, indexed_at FROM documents
WHERE document_id > :after AND added_sequence <= :sequence AND ifnull(removed_sequence, :sequence + 1) > :sequence
ORDER BY document_id LIMIT :limit
"""
_STORED = """
SELECT document_id, fingerprint, owner, chunk_count, added_sequence FROM documents
WHERE document_id IN (SELECT value FROM json_each(:ids))
AND added_sequence <= :sequence AND ifnull(removed_sequence, :sequence + 1) > :sequence
"""
_OWNED = """
SELECT document_id, source_uri FROM documents
WHERE owner = :owner AND owner <> '' AND removed_sequence IS NULL AND document_id > :after
ORDER BY document_id LIMIT :limit
"""
_CHUNK_IDS = """
SELECT chunk_id FROM documents JOIN chunks USING (document_row)
WHERE document_id = :id AND added_sequence <= :sequence AND ifnull(removed_sequence, :sequence + 1) > :sequence
ORDER BY ordinal
"""
_SAMPLE_TEXTS = """
SELECT text FROM chunks WHERE chunk_row IN (
    SELECT chunk_row FROM chunks JOIN documents USING (document_row) WHERE removed_sequence IS NULL
    ORDER BY random() LIMIT ?
)
"""
_METADATA = """
SELECT metadata, chunk_count FROM documents
WHERE added_sequence <= :sequence AND ifnull(removed_sequence, :sequence + 1) > :sequence
"""
_CHUNKS = """
SELECT chunk_row, chunk_id, document_row, metadata, dense, terms, codes
FROM chunks CROSS JOIN documents USING (document_row) CROSS JOIN vectors USING (chunk_row)
LEFT JOIN token_codes USING (chunk_row)
WHERE chunk_row > :last AND added_sequence <= :sequence AND ifnull(removed_sequence, :sequence + 1) > :sequence
ORDER BY chunk_row LIMIT :batch
"""
_TERMS = """
SELECT chunk_row, terms FROM chunks CROSS JOIN documents USING (document_row) CROSS JOIN vectors USING (chunk_row)
WHERE chunk_row > :last AND added_sequence <= :sequence AND ifnull(removed_sequence, :sequence + 1) > :sequence
ORDER BY chunk_row LIMIT :batch
"""
_REMOVED = """
SELECT chunk_row FROM documents JOIN chunks USING (document_row)
WHERE added_sequence <= :after AND removed_sequence > :after AND removed_sequence <= :sequence
"""


def _passage(row: _Row) -> Passage:
    chunk_id, document_id, title, heading_path, text, start, end, ordinal, page, metadata, source_uri, *counted = row
    token_count, header, header_token_count, chunk_row = counted
    return Passage(
        chunk_id=_written_id(chunk_id.hex()),
        document_id=document_id,
        title=title,
        heading_path=_headings(heading_path),
        text=text,
        start=start,
        end=end,
        ordinal=ordinal,
        page=page,
        metadata=_metadata(metadata),
        source_uri=source_uri,
        token_count=token_count,
        header=header,
        header_token_count=header_token_count,
        row=chunk_row,
    )


@lru_cache(maxsize=_REMEMBERED)
def _headings(text: str) -> tuple[str, ...]:
    return tuple(json.loads(text))


@lru_cache(maxsize=_REMEMBERED)
def _metadata(text: str) -> Metadata:
    """Reads the metadata of a passage; passages with equal ones share them, for nobody changes what is read."""
    return metadata_from_json(text)


def _written_id(digits: str) -> str:
    """Returns 32 hexadecimal digits as a UUID is written."""
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"


def document_from_row(row: Sequence[Any]) -> Document:
    """Returns a document of its columns: id, title, text, format, metadata, source URI, owner, notes."""
    document_id, title, text, text_format, metadata, source_uri, owner, notes = row
    return Document(
        document_id,
        title,
        text,
        TextFormat(text_format),
        metadata_from_json(metadata),
        source_uri,
        owner,
        notes_from_json(notes) if notes else (),
    )


def _summary(row: _Row) -> DocumentSummary:
    document_id, title, metadata, fingerprint, chunk_count, text_length, source_uri, indexed_at = row
    return DocumentSummary(
        document_id=document_id,
        title=title,
        metadata=metadata_from_json(metadata),
        fingerprint=fingerprint,
        chunk_count=chunk_count,
        text_length=text_length,
        source_uri=source_uri,
        indexed_at=datetime.fromisoformat(indexed_at),
    )


def _stored_chunks(rows: list[_Row]) -> list[StoredChunk]:
    metadata: dict[int, Metadata] = {}
    stored = []
    for row, chunk_id, document_row, text, dense, terms, blob in rows:
        if document_row not in metadata:
            metadata[document_row] = metadata_from_json(text)
        vector = np.frombuffer(dense, dtype="<f4")
        codes = None if blob is None else np.frombuffer(blob, dtype=np.uint8)
        shared = metadata[document_row]
        stored.append(StoredChunk(row, chunk_id, document_row, shared, vector, unpack_terms(terms), codes))
    return stored
