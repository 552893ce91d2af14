"""Backs up and restores what the settings name: the data folder's collections, or those on a Qdrant server.

A part of the composition root, by itself since neither needs a server that runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from indexers.backup.embedded import back_up_data_folder, restore_data_folder
from indexers.backup.manifest import EMBEDDED, QDRANT, BackedUp, Manifest
from indexers.homes import is_collection
from indexers.options import DenseModel
from indexers.types import CollectionKey
from retrieval.server.engines import encoders_of, measurements_of, open_encoder, open_sparse_encoder, scheduler_of
from retrieval.server.qdrant import qdrant_options
from retrieval.settings import Settings

if TYPE_CHECKING:
    from indexers.qdrant.backup import QdrantBackup


def kind_of(settings: Settings) -> str:
    """Returns the kind of backups of the configured collections."""
    return QDRANT if settings.index.kind == "qdrant" else EMBEDDED


async def back_up(settings: Settings, folder: Path, tenant: str | None, names: Sequence[str]) -> Manifest:
    """Backs up the named collections of a tenant, all of his when none is named, or all there are of a data folder.

    Raises:
        CollectionNotFound, IndexCorrupt, IndexUnavailable: it cannot be done.
        FileExistsError: the folder is not empty.
    """
    keys = [CollectionKey(tenant or "default", name) for name in names]
    if kind_of(settings) == QDRANT:
        async with _qdrant(settings) as backup:
            return await backup.back_up(folder, keys or await backup.keys(tenant or "default"))
    root = settings.data.folder
    if tenant is not None and not keys:
        keys = sorted(CollectionKey(tenant, one.name) for one in root.glob(f"{tenant}/*") if is_collection(one))
    return await asyncio.to_thread(back_up_data_folder, root, folder, keys)


async def restore(
    settings: Settings, folder: Path, places: Sequence[tuple[BackedUp, CollectionKey]], *, over: bool, any_model: bool
) -> None:
    """Restores collections, each under the key given with it; the model must be the configured one unless any is taken.

    Raises:
        CollectionExists, IndexCorrupt, ModelMismatch, DataFolderLocked, IndexUnavailable: nothing was replaced.
        ModelError: the configured model cannot be opened.
    """
    model = None if any_model else await asyncio.to_thread(configured_model, settings)
    if kind_of(settings) == QDRANT:
        async with _qdrant(settings) as backup:
            await backup.restore(folder, places, over=over, model=model)
        return
    await asyncio.to_thread(restore_data_folder, settings.data.folder, folder, places, over=over, model=model)


def configured_model(settings: Settings) -> DenseModel:
    """Opens the configured model to learn its id, revision and dimension.

    Raises:
        ModelError: it cannot be used.
    """
    with scheduler_of(settings) as scheduler:
        memory = measurements_of(settings)
        encoder, sparse = open_encoder(settings, scheduler, memory), open_sparse_encoder(settings, scheduler)
        return encoders_of(settings, scheduler, memory, encoder, sparse).configured


@asynccontextmanager
async def _qdrant(settings: Settings) -> AsyncIterator[QdrantBackup]:
    # qdrant-client takes most of a second to import, and only this kind needs it.
    from indexers.qdrant.backup import QdrantBackup  # noqa: PLC0415
    from indexers.qdrant.snapshots import Snapshots  # noqa: PLC0415
    from indexers.qdrant.store import QdrantStore  # noqa: PLC0415

    options = qdrant_options(settings.index)
    store = QdrantStore(options)
    try:
        async with Snapshots(options) as snapshots:
            yield QdrantBackup(store, snapshots)
    finally:
        await store.close()
