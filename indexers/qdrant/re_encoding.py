"""Brings a pair of chunks and documents up to what the collection holds now, encoded by another model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from qdrant_client import models

from encoders.term_statistics import TermStatistics
from indexers.migrating.migration import Encode
from indexers.options import DenseModel
from indexers.qdrant.conditions import any_keyword, of_tenant
from indexers.qdrant.generations import document_pieces, pieces
from indexers.qdrant.migration_plan import Pair
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import CollectionState, chunk_point, document_of, document_point, point_id
from indexers.qdrant.repair import parts
from indexers.qdrant.store import QdrantStore
from indexers.types import Document, EncodedDocument

_DOCUMENTS_A_BATCH = 32


@dataclass(frozen=True, slots=True)
class _Made:
    """What a batch of documents comes to."""

    gone: list[str]
    encoded: list[tuple[EncodedDocument, int]]  # with the write sequences that they are as of


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
        starts = range(0, len(document_ids), _DOCUMENTS_A_BATCH)
        batches = [document_ids[start : start + _DOCUMENTS_A_BATCH] for start in starts]
        done = 0
        async with aclosing(self._made(batches)) as encoded:
            async for batch, made in encoded:
                await self._write(made)
                done += len(batch)
                if progress is not None:
                    progress(done)

    async def _made(self, batches: Sequence[Sequence[str]]) -> AsyncGenerator[tuple[Sequence[str], _Made], None]:
        """Yields batches in order; the next one is encoded while whoever reads this writes the last."""
        ahead: asyncio.Task[_Made] | None = None
        try:
            for at, batch in enumerate(batches):
                made = await (ahead or self._make(batch))
                following = batches[at + 1 : at + 2]
                ahead = asyncio.create_task(self._make(following[0])) if following else None
                yield batch, made
        finally:
            if ahead is not None:
                ahead.cancel()
                await asyncio.gather(ahead, return_exceptions=True)

    async def _make(self, batch: Sequence[str]) -> _Made:
        ours = await self._sequences(self.names.documents, batch)
        theirs = await self._sequences(self.pair.documents, batch)
        behind = [name for name, sequence in ours.items() if theirs.get(name) != sequence]
        read = await self._read(behind) if behind else {}
        encoded = await self.encode([document for document, _ in read.values()]) if read else []
        gone = [one for one in batch if one not in ours]
        return _Made(gone, [(one, read[one.document.document_id][1]) for one in encoded])

    async def _write(self, made: _Made) -> None:
        """Writes chunks before documents: a document that is there says that all of it is."""
        await self._remove(made.gone)
        if not made.encoded:
            return
        chunks, documents = await asyncio.to_thread(self._points, made.encoded)
        await self._remove_chunks([one.document.document_id for one, _ in made.encoded])
        for piece in pieces(chunks):
            await self.store.upsert(self.pair.chunks, piece)
        for piece in document_pieces(documents):
            await self.store.upsert(self.pair.documents, piece)

    def _points(
        self, encoded: Sequence[tuple[EncodedDocument, int]]
    ) -> tuple[list[models.PointStruct], list[models.PointStruct]]:
        definition = replace(self.pair.described(), key=self.names.key)
        codec = self.model.codec if definition.code_bytes else None
        chunks, documents = list[models.PointStruct](), list[models.PointStruct]()
        for one, sequence in encoded:
            state = CollectionState(definition, 0, sequence)
            chunks += [chunk_point(one, each, state, self.statistics, codec) for each in one.chunks]
            documents.append(document_point(one, state))
        return chunks, documents

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
