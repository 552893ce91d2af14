"""The documents of a collection on a server, all of them at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from qdrant_client import models

from indexers.errors import TypeMismatch
from indexers.qdrant.conditions import of_tenant
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import point_id, with_fields
from indexers.qdrant.store import QdrantStore
from indexers.types import FieldType


async def document_ids(store: QdrantStore, names: PhysicalNames, passing: models.Filter) -> list[str]:
    """Returns the ids of the documents that pass, in no particular order."""
    batches = store.scroll(names.documents, passing, ["document_id"])
    return [one.payload["document_id"] async for batch in batches for one in batch if one.payload]


async def check_documents_fit(store: QdrantStore, names: PhysicalNames, fields: Mapping[str, FieldType]) -> None:
    """Refuses a schema that stored metadata cannot be coerced to.

    Raises:
        TypeMismatch: names the document.
    """
    everything = of_tenant(names.key.tenant)
    async for batch in store.scroll(names.documents, everything, ["document_id", "metadata"]):
        for one in batch:
            payload = one.payload or {}
            try:
                with_fields(payload, fields)
            except TypeMismatch as error:
                message = f"document {payload['document_id']!r} stands against the new schema: {error}"
                raise TypeMismatch(error.field, error.bound, message) from error


async def rewrite_documents(
    store: QdrantStore, names: PhysicalNames, fields: Mapping[str, FieldType], ids: Sequence[str]
) -> None:
    """Coerces the stored metadata of some documents; no other write may run meanwhile."""
    for document_id in ids:
        for one in await store.retrieve(names.documents, [point_id(document_id)], None):
            payload = with_fields(one.payload or {}, fields)
            await store.upsert(names.documents, [models.PointStruct(id=one.id, vector={}, payload=payload)])
