"""Documents as they were written, read back from a server: what carries a collection to another kind of index."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray
from qdrant_client import models

from encoders.types import TokenCodec
from indexers.qdrant.conditions import any_keyword, of_tenant
from indexers.qdrant.documents import document_ids
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import document_of, point_id, stored_terms
from indexers.qdrant.store import QdrantStore
from indexers.types import Chunk, EncodedChunk, EncodedDocument

_CHUNK = ("ordinal", "start", "end", "page", "text", "token_count", "header", "header_token_count")


@runtime_checkable
class WritesCodes(TokenCodec, Protocol):
    """A codec that makes codes of token vectors; of those that it has read from codes it makes the same codes."""

    def encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Returns the codes uint8 [tokens, code_bytes] of vectors [tokens, dim]."""
        ...


class QdrantExport:
    """Reads one collection in the order of its documents' ids, which are read at the first page of a walk."""

    def __init__(self, store: QdrantStore, names: PhysicalNames, codec: TokenCodec | None) -> None:
        self._store = store
        self._names = names
        self._codec = codec
        self._after = ""
        self._ids: list[str] = []

    async def export(self, after: str, limit: int) -> list[EncodedDocument]:
        """Returns up to so many documents with greater ids, by id; what is gone meanwhile is left out."""
        if not after or after != self._after:
            found = await document_ids(self._store, self._names, of_tenant(self._names.key.tenant))
            self._ids = sorted(one for one in found if one > after)
        while self._ids:
            page, self._ids = self._ids[:limit], self._ids[limit:]
            self._after = page[-1]
            if read := await self._read(page):
                return read
        return []

    async def _read(self, ids: Sequence[str]) -> list[EncodedDocument]:
        records = await self._store.retrieve(self._names.documents, [point_id(one) for one in ids], None, strictly=True)
        theirs = of_tenant(self._names.key.tenant, any_keyword("document_id", ids))
        chunks: defaultdict[str, list[models.Record]] = defaultdict(list)
        async for batch in self._store.scroll(self._names.chunks, theirs, None, vectors=True):
            for one in batch:
                chunks[(one.payload or {})["document_id"]].append(one)
        read = [self._document(one, chunks[(one.payload or {})["document_id"]]) for one in records]
        return sorted(read, key=lambda one: one.document.document_id)

    def _document(self, record: models.Record, chunks: Sequence[models.Record]) -> EncodedDocument:
        payloads = [(one.payload or {}, one) for one in chunks]
        newest = max((payload["version"] for payload, _ in payloads), default=0)
        kept = sorted((p["ordinal"], str(one.id), one) for p, one in payloads if p["version"] == newest)
        fingerprint = str((record.payload or {})["fingerprint"])
        return EncodedDocument(document_of(record), fingerprint, tuple(self._chunk(one) for _, _, one in kept))

    def _chunk(self, record: models.Record) -> EncodedChunk:
        payload: dict[str, Any] = record.payload or {}
        vectors: Any = record.vector
        chunk = Chunk(
            chunk_id=str(record.id),
            heading_path=tuple(payload["heading_path"]),
            notes=payload.get("notes", ""),
            **{name: payload[name] for name in _CHUNK},
        )
        codes = None
        if isinstance(self._codec, WritesCodes) and "tokens" in vectors:
            codes = self._codec.encode(np.array(vectors["tokens"], dtype=np.float32))
        return EncodedChunk(chunk, np.array(vectors["dense"], dtype=np.float32), stored_terms(record), codes)
