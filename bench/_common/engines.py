"""Opens the product's own parts for a tool, by the functions that the server opens them with."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from bench._common.cached_encoder import CachedEncoder
from bench._common.encodings import EncodingStore
from encoders.dense import OnnxDenseEncoder
from encoders.models import resolve
from encoders.open import ScheduledDenseEncoder
from encoders.scheduler import TokenScheduler
from encoders.sources import ModelSource
from indexers.chunking import Chunker
from rerank.cross_encoder import ScheduledCrossEncoder
from retrieval.errors import RerankerMissing
from retrieval.server.engines import chunker_of, open_encoder, scheduler_of
from retrieval.server.engines import open_reranker as open_configured_reranker
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
    with scheduler_of(settings) as scheduler:
        dense = await asyncio.to_thread(open_encoder, settings, scheduler)
        cached = CachedEncoder(dense, EncodingStore(cache_folder, dense.revision))
        yield Encoders(scheduler, dense, cached, chunker_of(settings.chunking, dense))


async def open_reranker(settings: Settings, encoders: Encoders) -> ScheduledCrossEncoder:
    """Opens the cross-encoder that the settings name, behind the same scheduler.

    Raises:
        RerankerMissing: the settings name none.
    """
    reranker = await asyncio.to_thread(open_configured_reranker, settings, encoders.scheduler)
    if reranker is None:
        raise RerankerMissing
    return reranker


def open_bare(settings: Settings) -> OnnxDenseEncoder:
    """Opens the same model without a scheduler, for calling it bare."""
    dense = settings.encoders.dense
    return OnnxDenseEncoder.open(resolve(ModelSource(dense.model, file=dense.file)))
