"""Carries a collection between the data folder and the Qdrant server that the settings name.

A part of the composition root, by itself since no server may hold the data folder meanwhile.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Literal, TypeAlias

from indexers.catalog import EmbeddedCatalog
from indexers.errors import CollectionNotFound
from indexers.homes import serving_record
from indexers.index import Catalog, Index
from indexers.models import OneModel
from indexers.options import DenseModel, GraphShape, IndexOptions, ShardKind
from indexers.record_export import RecordExport
from indexers.transfer import Export, TransferReport, transfer
from indexers.types import CollectionKey, EncodedDocument
from retrieval.server.backing_up import configured_model
from retrieval.server.qdrant import qdrant_options
from retrieval.settings import Settings

Side: TypeAlias = Literal["qdrant", "edge"]


async def transfer_collection(
    settings: Settings,
    key: CollectionKey,
    target_key: CollectionKey,
    to: Side,
    *,
    prune: bool,
    progress: Callable[[int], None] | None = None,
) -> TransferReport:
    """Carries a collection to the other side, where it is made if it is not there.

    Raises:
        DataFolderLocked: a server, or another run, holds the data folder.
        ModelMismatch: the collection is not the configured model's.
        IndexCorrupt, IndexUnavailable, CollectionNotFound, SchemaConflict: see `transfer`.
    """
    model = await asyncio.to_thread(configured_model, settings)
    async with _opened(settings, "edge", model) as edge, _opened(settings, "qdrant", model) as qdrant:
        from_catalog, to_catalog = (edge, qdrant) if to == "qdrant" else (qdrant, edge)
        source = await from_catalog.open(key)
        target = await _target(to_catalog, target_key, source)
        async with _export(settings, source) as export:
            return await transfer(export, source, target, prune=prune, progress=progress)


async def _target(catalog: Catalog, key: CollectionKey, source: Index) -> Index:
    definition = source.definition
    fields = dict(definition.fields)
    try:
        await catalog.open(key)
    except CollectionNotFound:
        with_tokens = definition.code_bytes > 0
        return await catalog.create(key, fields, definition.description, token_vectors=with_tokens)
    return await catalog.update(key, fields, None)


@asynccontextmanager
async def _opened(settings: Settings, side: Side, model: DenseModel) -> AsyncIterator[Catalog]:
    catalog = _catalog(settings, side, model)
    try:
        yield catalog
    finally:
        await catalog.close()


def _catalog(settings: Settings, side: Side, model: DenseModel) -> Catalog:
    index = settings.index
    if side == "qdrant":
        # qdrant-client takes most of a second to import, and only transfers and this kind need it.
        from indexers.qdrant.catalog import QdrantCatalog  # noqa: PLC0415

        return QdrantCatalog(qdrant_options(index), OneModel(model))
    kind = ShardKind.EDGE if index.kind == "qdrant" else ShardKind(index.kind)
    graph = GraphShape(index.hnsw_m, index.hnsw_ef_construct)
    options = IndexOptions(
        kind=kind,
        graph=graph,
        max_collections=index.max_collections,
        build_automatically=False,
        build_timeout_s=index.build_timeout_s,
    )
    return EmbeddedCatalog(settings.data.folder, OneModel(model), options)


@asynccontextmanager
async def _export(settings: Settings, source: Index) -> AsyncIterator[Export]:
    from indexers.qdrant.index import QdrantIndex  # noqa: PLC0415

    if isinstance(source, QdrantIndex):
        yield source.export().export
        return
    key = source.definition.key
    path = serving_record(settings.data.folder / key.tenant / key.collection)
    with RecordExport(path) as record:

        async def export(after: str, limit: int) -> list[EncodedDocument]:
            return await asyncio.to_thread(record.export, after, limit)

        yield export
