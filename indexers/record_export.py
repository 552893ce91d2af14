"""Documents as they were written, read back out of a record: what carries a collection to another kind of index."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeAlias

import numpy as np

from indexers.record_read import document_from_row
from indexers.record_schema import definition_from_json, open_connection, record_errors
from indexers.term_blob import unpack_terms
from indexers.types import Chunk, CollectionDefinition, EncodedChunk, EncodedDocument

_Row: TypeAlias = "tuple[Any, ...]"

_DOCUMENTS = """
SELECT document_row, fingerprint, document_id, title, text, format, metadata, source_uri, owner, notes
FROM documents JOIN texts USING (document_row) LEFT JOIN notes USING (document_row)
WHERE document_id > ? AND removed_sequence IS NULL ORDER BY document_id LIMIT ?
"""
_CHUNKS = """
SELECT document_row, dense, terms, codes, chunk_id, ordinal, start, end, heading_path, page, text, token_count, header,
    header_token_count, notes
FROM chunks JOIN vectors USING (chunk_row) LEFT JOIN token_codes USING (chunk_row)
WHERE document_row IN (SELECT value FROM json_each(?)) ORDER BY document_row, ordinal
"""


class RecordExport(AbstractContextManager["RecordExport"]):
    """Reads a record file, which a server may be writing; used by one thread at a time."""

    def __init__(self, path: Path) -> None:
        """Opens the file.

        Raises:
            IndexCorrupt: it is missing, broken or of another format.
        """
        self._path = path
        self._connection = open_connection(path, read_only=True)
        [(stored,)] = self._connection.execute("SELECT definition FROM collection").fetchall()
        self.definition: CollectionDefinition = definition_from_json(stored)

    def export(self, after: str, limit: int) -> list[EncodedDocument]:
        """Returns up to so many documents with greater ids, by id, all of one state."""
        with record_errors(self._path):
            self._connection.execute("BEGIN")
            try:
                documents = self._connection.execute(_DOCUMENTS, (after, limit)).fetchall()
                rows = json.dumps([row[0] for row in documents])
                chunks = self._connection.execute(_CHUNKS, (rows,)).fetchall()
            finally:
                self._connection.execute("COMMIT")
        return _documents(documents, chunks, self.definition.code_bytes)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def __enter__(self) -> Self:
        return self


def _documents(documents: Sequence[_Row], chunks: Sequence[_Row], code_bytes: int) -> list[EncodedDocument]:
    of_document: defaultdict[int, list[EncodedChunk]] = defaultdict(list)
    for document_row, *chunk in chunks:
        of_document[document_row].append(_chunk(chunk, code_bytes))
    return [EncodedDocument(document_from_row(row[2:]), row[1], tuple(of_document[row[0]])) for row in documents]


def _chunk(row: Sequence[Any], code_bytes: int) -> EncodedChunk:
    dense, terms, codes, chunk_id, ordinal, start, end, heading_path, *rest = row
    digits = chunk_id.hex()
    name = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
    page, text, token_count, header, header_token_count, notes = rest
    chunk = Chunk(
        chunk_id=name,
        ordinal=ordinal,
        start=start,
        end=end,
        heading_path=tuple(json.loads(heading_path)),
        page=page,
        text=text,
        token_count=token_count,
        header=header,
        header_token_count=header_token_count,
        notes=notes,
    )
    stored = None if codes is None else np.frombuffer(codes, dtype=np.uint8).reshape(-1, code_bytes)
    return EncodedChunk(chunk, np.frombuffer(dense, dtype="<f4"), unpack_terms(terms), stored)
