"""The write side of a collection on a server: the order of steps that leaves a crash nothing to lose.

New chunks, then old ones away, then the documents, then the collection's own point. A write that broke off is made good
by writing the same again, since the document's stored fingerprint is still the old one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from qdrant_client import models

from indexers.owned import OwnedTasks
from indexers.qdrant.conditions import any_keyword, of_tenant
from indexers.qdrant.generations import write_points
from indexers.qdrant.points import CollectionState, chunk_point, document_point, point_id
from indexers.qdrant.store import QdrantStore
from indexers.qdrant.view import CollectionView
from indexers.types import EncodedDocument

_IDS_A_CALL = 1_000


class QdrantWriting:
    """Changes the documents of a collection, one call at a time."""

    def __init__(self, store: QdrantStore, view: CollectionView) -> None:
        self._store = store
        self._view = view
        self._tasks = OwnedTasks()
        self.lock = asyncio.Lock()  # whoever holds it, no write runs
        self.touched: set[str] = set()  # ids written since it was last emptied

    async def replace(self, documents: Sequence[EncodedDocument]) -> None:
        """Replaces documents, which must be valid; goes on to its end even when the caller leaves."""
        await self._tasks.to_the_end(self._replace(documents))

    async def delete(self, document_ids: Sequence[str]) -> int:
        """Deletes documents and returns how many were there; goes on to its end even when the caller leaves."""
        return await self._tasks.to_the_end(self._delete(document_ids))

    async def close(self) -> None:
        """Lets started writes finish."""
        await self._tasks.drain()

    async def _replace(self, documents: Sequence[EncodedDocument]) -> None:
        names = self._view.names
        async with self.lock:
            state = await self._view.after_a_write()
            ids = [one.document.document_id for one in documents]
            self.touched.update(ids)
            chunks = await asyncio.to_thread(self._chunk_points, documents, state)
            await write_points(self._store, names.chunks, chunks)
            for part in _parts(ids):
                await self._store.delete(names.chunks, self._older_than(state.write_sequence, part))
            for document in documents:  # each alone: a text may be nearly as large as a message
                await self._store.upsert(names.documents, [document_point(document, state)])
            await self._view.advance(state)

    async def _delete(self, document_ids: Sequence[str]) -> int:
        names, tenant = self._view.names, self._view.names.key.tenant
        async with self.lock:
            state = await self._view.after_a_write()
            there: list[str] = []
            for part in _parts(document_ids):
                wanted = [point_id(one) for one in part]
                found = await self._store.retrieve(names.documents, wanted, ["document_id"])
                there += [one.payload["document_id"] for one in found if one.payload]
            self.touched.update(there)
            for part in _parts(there):
                theirs = of_tenant(tenant, any_keyword("document_id", part))
                await self._store.delete(names.chunks, theirs)
                await self._store.delete(names.documents, theirs)
            if there:
                await self._view.advance(state)
            return len(there)

    def _chunk_points(self, documents: Sequence[EncodedDocument], state: CollectionState) -> list[models.PointStruct]:
        statistics, codec = self._view.statistics, self._view.codec
        return [chunk_point(one, chunk, state, statistics, codec) for one in documents for chunk in one.chunks]

    def _older_than(self, version: int, document_ids: Sequence[str]) -> models.Filter:
        older = models.FieldCondition(key="version", range=models.Range(lt=version))
        return of_tenant(self._view.names.key.tenant, any_keyword("document_id", document_ids), older)


def _parts(ids: Sequence[str]) -> list[Sequence[str]]:
    return [ids[start : start + _IDS_A_CALL] for start in range(0, len(ids), _IDS_A_CALL)]
