"""Which documents of a collection were deleted, and by which write.

A writer who read his source before a deletion must not bring the document back (case JOB-04), so a deletion is
remembered for far longer than a writer can hold on to what it has read. Tombstones stand in the list of collections,
marked by tenant and collection, so that they go with the collection. They also say what a crashed deletion was about,
and what a build must look at again.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence

from qdrant_client import models

from indexers.qdrant.conditions import at_least, keyword, number, of_tenant
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import point_id
from indexers.qdrant.store import QdrantStore

TOMBSTONE_OF = "tombstone_of"
KEPT_S = 7 * 86_400  # far longer than a writer can hold on to what it has read
_PRUNED_EVERY_S = 3_600.0
_POINTS_A_CALL = 500


class Tombstones:
    """The tombstones of one collection."""

    def __init__(self, store: QdrantStore, names: PhysicalNames) -> None:
        self._store = store
        self._names = names
        self._pruned_at = -_PRUNED_EVERY_S

    async def put(self, document_ids: Sequence[str], sequence: int, *, fences: bool = True) -> None:
        """Remembers deletions, and forgets those that are old; without `fences` nobody is kept from writing them."""
        for start in range(0, len(document_ids), _POINTS_A_CALL):
            part = document_ids[start : start + _POINTS_A_CALL]
            await self._store.upsert(self._names.collections, [self._point(one, sequence, fences) for one in part])
        if time.monotonic() - self._pruned_at >= _PRUNED_EVERY_S:
            self._pruned_at = time.monotonic()
            await self._store.delete(self._names.collections, self._ours(_before(int(time.time()) - KEPT_S)))

    async def deleted_after(self, since: int, document_ids: Iterable[str]) -> set[str]:
        """Returns those of the documents that were deleted after a write."""
        ids = [self._id(one) for one in document_ids]
        found = await self._store.retrieve(self._names.collections, ids, None, strictly=True)
        payloads = [one.payload or {} for one in found]
        return {one["document_id"] for one in payloads if one["fences"] and one["write_sequence"] > since}

    async def of_write(self, sequence: int) -> list[str]:
        """Returns what one write has deleted."""
        return await self._ids(number("write_sequence", sequence))

    async def since(self, sequence: int) -> list[str]:
        """Returns what this write and all later ones have deleted."""
        return await self._ids(at_least("write_sequence", sequence))

    async def _ids(self, condition: models.Condition) -> list[str]:
        batches = self._store.scroll(self._names.collections, self._ours(condition), ["document_id"])
        return [one.payload["document_id"] async for batch in batches for one in batch if one.payload]

    def _ours(self, condition: models.Condition) -> models.Filter:
        key = self._names.key
        return of_tenant(key.tenant, keyword(TOMBSTONE_OF, key.collection), condition)

    def _id(self, document_id: str) -> str:
        return point_id(self._names.key.tenant, self._names.key.collection, "deleted", document_id)

    def _point(self, document_id: str, sequence: int, fences: bool) -> models.PointStruct:
        payload = {
            "tenant": self._names.key.tenant,
            TOMBSTONE_OF: self._names.key.collection,
            "document_id": document_id,
            "write_sequence": sequence,
            "deleted_at": int(time.time()),
            "fences": fences,
        }
        return models.PointStruct(id=self._id(document_id), vector={}, payload=payload)


def _before(moment: int) -> models.FieldCondition:
    return models.FieldCondition(key="deleted_at", range=models.Range(lt=moment))
