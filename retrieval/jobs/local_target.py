"""A collection that the worker opens itself: in the data folder when no server has it, or on a Qdrant server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from indexers.errors import CollectionNotFound
from indexers.index import Catalog, Index
from indexers.jobs.declaring import declared_fields
from indexers.jobs.index_target import IndexTarget
from indexers.jobs.spec import ChunkingSpec, JobSpec
from indexers.types import CollectionKey
from retrieval.server.engines import Chunking, write_side
from retrieval.settings import Settings


@asynccontextmanager
async def local_target(settings: Settings, tenant: str, spec: JobSpec) -> AsyncIterator[IndexTarget]:
    """Opens the write side and the job's collection, which is made when it is not there.

    Raises:
        DataFolderLocked: a server, or another run, holds the data folder.
        ModelError: the encoder cannot be used.
        SchemaConflict: the collection declares one of the job's fields with another type.
    """
    async with write_side(settings) as side:
        index = await opened(side.catalog, CollectionKey(tenant, spec.collection), spec)
        yield IndexTarget(index, side.indexer_of(index, chunking_of(spec.chunking)), builds=True)


def chunking_of(spec: ChunkingSpec) -> Chunking:
    """Returns what a job asks for, where it is not what the settings say."""
    return Chunking(spec.limit_tokens or None, None if spec.overlap_tokens < 0 else spec.overlap_tokens)


async def opened(catalog: Catalog, key: CollectionKey, spec: JobSpec) -> Index:
    """Returns the collection with the job's fields declared."""
    try:
        index = await catalog.open(key)
    except CollectionNotFound:
        return await catalog.create(key, declared_fields(spec, {}), spec.description)
    declared = declared_fields(spec, index.definition.fields)
    return await catalog.update(key, declared, None) if declared else index
