"""The embedded index of the simulation."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from bench._common.consistency.engines import WordEncoder
from indexers.catalog import EmbeddedCatalog
from indexers.models import OneModel
from indexers.options import DenseModel, IndexOptions, ShardKind


@asynccontextmanager
async def embedded_catalog(folder: Path, kind: ShardKind) -> AsyncIterator[EmbeddedCatalog]:
    """Gives an empty catalog for the vectors of `WordEncoder`."""
    encoder = WordEncoder()
    model = DenseModel(encoder.model_id, encoder.revision, encoder.dim)
    catalog = EmbeddedCatalog(folder, OneModel(model), IndexOptions(kind=kind, build_automatically=False))
    try:
        yield catalog
    finally:
        await catalog.close()
