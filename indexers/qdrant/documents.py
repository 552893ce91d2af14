"""The documents of a collection on a server, all of them at once."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence

from qdrant_client import models

from indexers.errors import TypeMismatch
from indexers.qdrant.conditions import at_least, field_indexes, keyword, of_tenant
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import point_id, with_fields
from indexers.qdrant.store import QdrantStore
from indexers.qdrant.tombstones import Tombstones
from indexers.types import FieldType

INDEXES = {
    "document_id": models.PayloadSchemaType.KEYWORD,
    "owner": models.PayloadSchemaType.KEYWORD,
    "write_sequence": models.PayloadSchemaType.INTEGER,
}


async def create_documents(
    store: QdrantStore, names: PhysicalNames, name: str, fields: Mapping[str, FieldType]
) -> None:
    """Makes an empty physical collection for documents, in the place of what a failed attempt left."""
    await store.drop(name)
    await store.create(name, None, INDEXES | field_indexes(fields))


async def document_ids(store: QdrantStore, names: PhysicalNames, passing: models.Filter) -> list[str]:
    """Returns the ids of the documents that pass, in no particular order."""
    batches = store.scroll(names.documents, passing, ["document_id"])
    return [one.payload["document_id"] async for batch in batches for one in batch if one.payload]


async def touched_since(store: QdrantStore, names: PhysicalNames, sequence: int) -> set[str]:
    """Returns the ids of the documents that this write and all later ones have written or deleted."""
    written = await document_ids(store, names, of_tenant(names.key.tenant, at_least("write_sequence", sequence)))
    return {*written, *await Tombstones(store, names).since(sequence)}


async def owned(store: QdrantStore, names: PhysicalNames, owner: str) -> list[tuple[str, str]]:
    """Returns (id, source URI) of the owner's documents, by id."""
    theirs = of_tenant(names.key.tenant, keyword("owner", owner))
    batches = store.scroll(names.documents, theirs, ["document_id", "source_uri"])
    found = [
        (one.payload["document_id"], one.payload["source_uri"])
        async for batch in batches
        for one in batch
        if one.payload
    ]
    found.sort()
    return found


async def chunk_ids(store: QdrantStore, names: PhysicalNames, document_id: str) -> list[str]:
    """Returns the ids of the chunks of a document's newest version, in order."""
    theirs = of_tenant(names.key.tenant, keyword("document_id", document_id))
    batches = store.scroll(names.chunks, theirs, ["version", "ordinal"])
    found = [(one.payload or {}, str(one.id)) async for batch in batches for one in batch]
    newest = max((payload["version"] for payload, _ in found), default=0)
    return [name for _, name in sorted((one["ordinal"], name) for one, name in found if one["version"] == newest)]


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
    store: QdrantStore,
    names: PhysicalNames,
    fields: Mapping[str, FieldType],
    ids: Sequence[str],
    keep: Callable[[], Awaitable[None]],
) -> None:
    """Coerces the stored metadata of some documents; no other write may run meanwhile, so `keep` the turn."""
    for document_id in ids:
        await keep()
        for one in await store.retrieve(names.documents, [point_id(document_id)], None):
            payload = with_fields(one.payload or {}, fields)
            await store.upsert(names.documents, [models.PointStruct(id=one.id, vector={}, payload=payload)])
