"""Brings a pair of chunks and documents up to what the collection holds now, encoded by another model."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from qdrant_client import models

from encoders.term_statistics import TermStatistics
from indexers.migrating.migration import Encode
from indexers.options import DenseModel
from indexers.qdrant.conditions import any_keyword, of_tenant
from indexers.qdrant.generations import pieces
from indexers.qdrant.migration_plan import Pair
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import CollectionState, chunk_point, document_of, document_point, point_id
from indexers.qdrant.repair import parts
from indexers.qdrant.store import QdrantStore
from indexers.types import Document, EncodedDocument

_DOCUMENTS_A_BATCH = 32


@dataclass(frozen=True, slots=True)
class ReEncoding:
    """Writes the documents of a collection into a pair."""

    store: QdrantStore
    names: PhysicalNames
    pair: Pair
    model: DenseModel
    statistics: TermStatistics
    encode: Encode

    async def bring(self, document_ids: Sequence[str], progress: Callable[[int], None] | None = None) -> None:
        """Brings some documents up to date: those that are gone go, those that differ are encoded.

        A document says by its write sequence which state it is of, so what is there already costs nothing.
        """
        for start in range(0, len(document_ids), _DOCUMENTS_A_BATCH):
            batch = document_ids[start : start + _DOCUMENTS_A_BATCH]
            ours = await self._sequences(self.names.documents, batch)
            theirs = await self._sequences(self.pair.documents, batch)
            await self._remove([one for one in batch if one not in ours])
            if behind := [name for name, sequence in ours.items() if theirs.get(name) != sequence]:
                await self._write(await self._read(behind))
            if progress is not None:
                progress(start + len(batch))

    async def _write(self, behind: dict[str, tuple[Document, int]]) -> None:
        encoded = await self.encode([document for document, _ in behind.values()])
        definition = self.pair.described()
        await self._remove_chunks(list(behind))
        for one in encoded:
            sequence = behind[one.document.document_id][1]
            state = CollectionState(replace(definition, key=self.names.key), 0, sequence)
            made = await asyncio.to_thread(self._points, one, state)
            for piece in pieces(made):
                await self.store.upsert(self.pair.chunks, piece)
            await self.store.upsert(self.pair.documents, [document_point(one, state)])

    def _points(self, document: EncodedDocument, state: CollectionState) -> list[models.PointStruct]:
        codec = self.model.codec if state.definition.code_bytes else None
        return [chunk_point(document, each, state, self.statistics, codec) for each in document.chunks]

    async def _read(self, ids: Sequence[str]) -> dict[str, tuple[Document, int]]:
        found = await self.store.retrieve(self.names.documents, [point_id(one) for one in ids], None, strictly=True)
        return {
            (one.payload or {})["document_id"]: (document_of(one), int((one.payload or {}).get("write_sequence", 0)))
            for one in found
        }

    async def _sequences(self, name: str, ids: Sequence[str]) -> dict[str, int]:
        wanted = ["document_id", "write_sequence"]
        found = await self.store.retrieve(name, [point_id(one) for one in ids], wanted, strictly=True)
        payloads = [one.payload or {} for one in found]
        return {one["document_id"]: int(one.get("write_sequence", 0)) for one in payloads}

    async def _remove(self, ids: Sequence[str]) -> None:
        for part in parts(ids):
            theirs = of_tenant(self.names.key.tenant, any_keyword("document_id", part))
            await self.store.delete(self.pair.chunks, theirs)
            await self.store.delete(self.pair.documents, theirs)

    async def _remove_chunks(self, ids: Sequence[str]) -> None:
        theirs = of_tenant(self.names.key.tenant, any_keyword("document_id", ids))
        await self.store.delete(self.pair.chunks, theirs)
