"""Deletes the documents that a job has written."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from indexers.errors import CollectionNotFound
from indexers.index import Catalog
from indexers.jobs.state import Job
from indexers.types import CollectionKey

_AT_ONCE = 1_000


def deleting(catalog: Catalog) -> Callable[[Job], Awaitable[int]]:
    """Returns what deletes a job's documents from a catalog and says how many there were."""

    async def delete(job: Job) -> int:
        try:
            index = await catalog.open(CollectionKey(job.key.tenant, job.spec.collection))
        except CollectionNotFound:
            return 0
        deleted = 0
        while owned := await index.owned(job.key.name, "", _AT_ONCE):
            deleted += await index.delete([document_id for document_id, _ in owned])
        return deleted

    return delete
