"""A collection in a dictionary: enough of an Index to see what the write side does with one. It cannot search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

import numpy as np
from numpy.typing import NDArray

from encoders.bm25 import Bm25Statistics, collect_statistics
from indexers.filters import Filter
from indexers.types import (
    Candidates,
    CollectionDefinition,
    CollectionKey,
    Counts,
    Document,
    DocumentPage,
    DocumentSummary,
    EncodedDocument,
    Epoch,
    FieldType,
    Passage,
    SearchQuery,
    StoredDocument,
    WriteResult,
)

_CREATED = datetime(2026, 1, 1, tzinfo=UTC)


class MemoryIndex:
    """Keeps encoded documents by id, in the order of their first write."""

    def __init__(self, fields: Mapping[str, FieldType] | None = None, dim: int = 8, code_bytes: int = 0) -> None:
        key = CollectionKey("default", "memory")
        self.definition = CollectionDefinition(key, fields or {}, "", "hash", "r1", dim, _CREATED, code_bytes)
        self.documents: dict[str, EncodedDocument] = {}
        self.upserts: list[list[str]] = []
        self.epoch = Epoch(1, 0)

    @property
    def statistics(self) -> Bm25Statistics:
        return collect_statistics(chunk.terms for document in self.documents.values() for chunk in document.chunks)

    async def search(self, query: SearchQuery, filter: Filter | None) -> Candidates:
        raise NotImplementedError

    async def fetch(self, chunk_ids: Sequence[str]) -> list[Passage]:
        raise NotImplementedError

    async def late_scores(self, query: NDArray[np.float32], passages: Sequence[Passage]) -> NDArray[np.float32]:
        return np.full(len(passages), np.nan, dtype=np.float32)

    async def upsert(self, documents: Sequence[EncodedDocument], since: int | None = None) -> WriteResult:
        self.epoch = Epoch(1, self.epoch.write_sequence + 1)
        self.documents.update({document.document.document_id: document for document in documents})
        self.upserts.append([document.document.document_id for document in documents])
        return WriteResult(self.epoch)

    async def delete(self, document_ids: Sequence[str], since: int | None = None) -> int:
        return sum(self.documents.pop(document_id, None) is not None for document_id in document_ids)

    async def delete_where(self, filter: Filter) -> int:
        raise NotImplementedError

    async def look_up(self, document_ids: Sequence[str]) -> dict[str, StoredDocument]:
        return {name: _stored(self.documents[name]) for name in document_ids if name in self.documents}

    async def owned(self, owner: str, after: str, limit: int) -> list[tuple[str, str]]:
        theirs = (one.document for one in self.documents.values() if one.document.owner == owner != "")
        found = sorted((one.document_id, one.source_uri) for one in theirs)
        return [one for one in found if one[0] > after][:limit]

    async def chunk_ids(self, document_id: str) -> list[str]:
        stored = self.documents.get(document_id)
        return [one.chunk.chunk_id for one in stored.chunks] if stored else []

    async def get_document(self, document_id: str) -> Document | None:
        stored = self.documents.get(document_id)
        return stored.document if stored else None

    async def list_documents(self, page_size: int, page_token: str) -> DocumentPage:
        """Gives two documents a page, so that every listing has several."""
        names = [name for name in sorted(self.documents) if name > page_token]
        page = [_summary(self.documents[name]) for name in names[:2]]
        return DocumentPage(tuple(page), names[1] if len(names) > 2 else "")

    async def count(self, filter: Filter | None) -> Counts:
        return Counts(len(self.documents), sum(len(document.chunks) for document in self.documents.values()))

    async def build(self) -> Epoch:
        return self.epoch

    async def build_if_stale(self) -> None:
        pass

    async def close(self) -> None:
        self.documents.clear()


def _summary(stored: EncodedDocument) -> DocumentSummary:
    document = stored.document
    return DocumentSummary(
        document.document_id,
        document.title,
        document.metadata,
        stored.fingerprint,
        len(stored.chunks),
        len(document.text),
        document.source_uri,
        _CREATED,
    )


def _stored(encoded: EncodedDocument) -> StoredDocument:
    return StoredDocument(encoded.fingerprint, encoded.document.owner, len(encoded.chunks), 1)
