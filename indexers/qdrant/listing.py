"""The list of all collections of all tenants: one small physical collection that everything else is found by."""

from __future__ import annotations

from qdrant_client import models

from indexers.errors import IndexUnavailable
from indexers.qdrant.lease import BUILDING, WRITING
from indexers.qdrant.migration_plan import MIGRATION_OF
from indexers.qdrant.store import QdrantStore
from indexers.qdrant.tombstones import TOMBSTONE_OF

_INDEXES = {
    "collection": models.PayloadSchemaType.KEYWORD,
    "statistics_of": models.PayloadSchemaType.KEYWORD,
    MIGRATION_OF: models.PayloadSchemaType.KEYWORD,
    TOMBSTONE_OF: models.PayloadSchemaType.KEYWORD,
    "write_sequence": models.PayloadSchemaType.INTEGER,
    "deleted_at": models.PayloadSchemaType.INTEGER,
    WRITING: models.PayloadSchemaType.KEYWORD,
    BUILDING: models.PayloadSchemaType.KEYWORD,
}


async def ensure_list(store: QdrantStore, name: str) -> None:
    """Makes the list when the server has none."""
    if await store.exists(name):
        return
    try:
        await store.create(name, None, _INDEXES)
    except IndexUnavailable:
        if not await store.exists(name):  # another process may have been quicker
            raise
