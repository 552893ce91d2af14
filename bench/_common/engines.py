"""Opens the product's own parts for a tool, from the same settings that the server takes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench._common.cached_encoder import CachedEncoder
from bench._common.vectors import VectorStore
from encoders.cpu import usable_cpus
from encoders.open import ScheduledDenseEncoder, open_dense
from encoders.scheduler import TokenScheduler
from encoders.sources import ModelSource
from indexers.chunking import Chunker, ChunkLimits
from rerank.cross_encoder import ScheduledCrossEncoder, open_cross_encoder
from retrieval.errors import RerankerMissing
from retrieval.settings import Settings


@dataclass(frozen=True, slots=True)
class Encoders:
    """The encoder as the server has it, the same with a memory, and the chunker that belongs to it."""

    scheduler: TokenScheduler
    dense: ScheduledDenseEncoder
    cached: CachedEncoder
    chunker: Chunker


@asynccontextmanager
async def open_encoders(settings: Settings, cache_folder: Path) -> AsyncIterator[Encoders]:
    """Opens the encoder behind its scheduler and stops it afterwards."""
    workers = settings.encoders.workers or usable_cpus()
    scheduler = TokenScheduler(workers, settings.encoders.queue_items)
    try:
        dense = await asyncio.to_thread(open_dense, ModelSource(settings.encoders.dense.model), scheduler)
        cached = CachedEncoder(dense, VectorStore(cache_folder, dense.revision, dense.dim))
        yield Encoders(scheduler, dense, cached, Chunker(dense.tokenization, chunk_limits(settings, dense)))
    finally:
        await asyncio.to_thread(scheduler.stop)


def chunk_limits(settings: Settings, dense: ScheduledDenseEncoder) -> ChunkLimits:
    """Returns the sizes that the settings ask for, capped by the model."""
    limit = min(settings.chunking.limit_tokens, dense.max_tokens)
    return ChunkLimits(limit_tokens=limit, overlap_tokens=min(settings.chunking.overlap_tokens, limit // 4))


async def open_reranker(settings: Settings, encoders: Encoders) -> ScheduledCrossEncoder:
    """Opens the cross-encoder that the settings name, behind the same scheduler.

    Raises:
        RerankerMissing: the settings name none.
    """
    chosen = settings.rerank
    if not chosen.model:
        raise RerankerMissing
    source = ModelSource(chosen.model, file=chosen.file, max_tokens=chosen.limit_tokens)
    return await asyncio.to_thread(open_cross_encoder, source, encoders.scheduler)
