"""Indexes into the data folder by itself, when no server runs there."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from indexers.errors import CollectionNotFound
from indexers.types import CollectionKey, FieldType
from retrieval.cli.index_sources import same_sources
from retrieval.server.engines import write_side

if TYPE_CHECKING:
    from collections.abc import Mapping

    from indexers.index import Catalog, Index
    from indexers.reports import IndexReport, Progress
    from retrieval.cli.index_job import IndexJob
    from retrieval.settings import Settings


async def index_local(settings: Settings, tenant: str, job: IndexJob, progress: Progress | None) -> IndexReport:
    """Does the job, then builds a generation when much has changed.

    Raises:
        DataFolderLocked: a server, or another run, holds the data folder.
        ModelError: the encoder cannot be used.
        SchemaConflict: the collection declares one of the fields with another type.
    """
    async with write_side(settings) as side:
        index = await _opened(side.catalog, CollectionKey(tenant, job.collection), job.fields)
        items = job.items if job.replace_sources else await same_sources(index, job.items, job.read)
        report = await side.indexer_of(index).run(items, job.roots, progress)
        if report.counts.written or report.counts.removed:
            await index.build_if_stale()
        return replace(report, epoch=index.epoch)


async def _opened(catalog: Catalog, key: CollectionKey, fields: Mapping[str, str]) -> Index:
    declared = {name: FieldType(kind) for name, kind in fields.items()}
    try:
        index = await catalog.open(key)
    except CollectionNotFound:
        return await catalog.create(key, declared, "")
    return await catalog.update(key, declared, None) if declared else index
