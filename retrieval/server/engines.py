"""Opens what computes and stores, as the settings say: encoders, the cross-encoder, the catalog, the indexer.

A part of the composition root, by itself since `headrace index` opens a data folder without serving it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Protocol, TypeAlias

from encoders.cpu import one_blas_thread, usable_cpus
from encoders.measured import Measurements
from encoders.open import ScheduledDenseEncoder, open_dense
from encoders.scheduler import TokenScheduler
from encoders.sources import ModelSource
from encoders.splade_open import ScheduledSparseEncoder, open_sparse
from encoders.types import TextKind
from indexers.catalog import EmbeddedCatalog
from indexers.chunking import Chunker, ChunkLimits
from indexers.index import Catalog, Index
from indexers.ingest import Indexer
from indexers.models import Models
from indexers.options import GraphShape, IndexOptions, ShardKind, SparseModel
from indexers.types import CollectionDefinition
from rerank.cross_encoder import ScheduledCrossEncoder, open_cross_encoder
from retrieval.server.encoder_pool import EncoderPool
from retrieval.server.qdrant import qdrant_options
from retrieval.settings import Settings
from retrieval.settings.engines import ChunkingSettings, IndexSettings

_STOP_S = 1.0  # for accepted work to end; what is left fails
_TARGET_SHARE = 25 / 32  # of the limit, for chunks that are put together from blocks


@contextmanager
def scheduler_of(settings: Settings) -> Iterator[TokenScheduler]:
    """Runs the scheduler while the body runs."""
    workers = settings.encoders.workers or usable_cpus()
    scheduler = TokenScheduler(workers, settings.encoders.queue_items)
    try:
        with one_blas_thread():
            yield scheduler
    finally:
        scheduler.stop(_STOP_S)


def measurements_of(settings: Settings) -> Measurements:
    """Returns what earlier starts with this data folder have measured on this machine."""
    return Measurements(Path(settings.data.folder) / "measured.json")


def models_folder(settings: Settings) -> Path:
    """Returns where `headrace models pull` puts models, which are found there by their ids."""
    return Path(settings.data.folder) / "models"


def open_encoder(
    settings: Settings, scheduler: TokenScheduler, memory: Measurements | None = None, model: str = ""
) -> ScheduledDenseEncoder:
    """Opens the configured dense encoder, or another one, and compares it with its reference vectors on this CPU.

    Raises:
        ModelError: it cannot be used.
    """
    dense = settings.encoders.dense
    file = dense.file if not model else ""  # the name of a file inside the configured model
    source = ModelSource(
        model or dense.model, file=file, max_tokens=dense.limit_tokens, models_folder=models_folder(settings)
    )
    return open_dense(source, scheduler, memory)


def open_sparse_encoder(settings: Settings, scheduler: TokenScheduler) -> ScheduledSparseEncoder | None:
    """Opens the learned sparse encoder; None for BM25.

    Raises:
        ModelError: it cannot be used.
        ExtraMissing: its library is not installed.
    """
    sparse = settings.encoders.sparse
    if not sparse.model:
        return None
    return open_sparse(ModelSource(sparse.model, file=sparse.file, models_folder=models_folder(settings)), scheduler)


def open_reranker(
    settings: Settings, scheduler: TokenScheduler, memory: Measurements | None = None
) -> ScheduledCrossEncoder | None:
    """Opens the cross-encoder and compares it with its reference logits on this CPU; None when none is configured.

    Raises:
        ModelError: it cannot be used.
    """
    rerank = settings.rerank
    if not rerank.model:
        return None
    source = ModelSource(
        rerank.model, file=rerank.file, max_tokens=rerank.limit_tokens, models_folder=models_folder(settings)
    )
    return open_cross_encoder(source, scheduler, memory)


def encoders_of(
    settings: Settings,
    scheduler: TokenScheduler,
    memory: Measurements,
    configured: ScheduledDenseEncoder,
    sparse: ScheduledSparseEncoder | None,
) -> EncoderPool:
    """Returns the pool of the encoders that collections are of."""
    terms = SparseModel(sparse.model_id, sparse.revision) if sparse else None
    return EncoderPool(configured, terms, lambda model: open_encoder(settings, scheduler, memory, model))


@asynccontextmanager
async def catalog_of(settings: Settings, models: Models) -> AsyncIterator[Catalog]:
    """Opens the catalog of collections and closes it.

    Raises:
        DataFolderLocked: another process holds the data folder.
        ConfigError: there is no index of that kind.
    """
    catalog = _open_catalog(settings, models)
    try:
        yield catalog
    finally:
        await catalog.close()


@dataclass(frozen=True, slots=True)
class Chunking:
    """How documents are cut, where a caller asks for something else than the settings say."""

    limit_tokens: int | None = None
    overlap_tokens: int | None = None


AS_CONFIGURED = Chunking()


EncoderOf: TypeAlias = Callable[[CollectionDefinition], ScheduledDenseEncoder]
"""Returns the encoder of a collection's vectors."""


class IndexerOf(Protocol):
    """Makes the indexer of a collection, whichever model it is of."""

    def __call__(self, index: Index, chunking: Chunking = AS_CONFIGURED) -> Indexer:
        """Returns an indexer that cuts documents so; it is cheap to make."""
        ...


def chunkers_of(settings: ChunkingSettings) -> Callable[[ScheduledDenseEncoder, Chunking], Chunker]:
    """Returns what makes the chunker of an encoder, and remembers the last ones."""

    @lru_cache(maxsize=64)
    def chunker(encoder: ScheduledDenseEncoder, chunking: Chunking) -> Chunker:
        limit = settings.limit_tokens if chunking.limit_tokens is None else chunking.limit_tokens
        overlap = settings.overlap_tokens if chunking.overlap_tokens is None else chunking.overlap_tokens
        return chunker_of(ChunkingSettings(limit_tokens=limit, overlap_tokens=overlap), encoder)

    return chunker


def indexer_of(
    settings: ChunkingSettings,
    encoders: EncoderOf,
    scheduler: TokenScheduler,
    sparse: ScheduledSparseEncoder | None = None,
) -> IndexerOf:
    """Returns what makes the indexer of a collection."""
    chunker = chunkers_of(settings)

    def made(index: Index, chunking: Chunking = AS_CONFIGURED) -> Indexer:
        encoder = encoders(index.definition)
        return Indexer(index, encoder, chunker(encoder, chunking), scheduler.bulk_threads, sparse)

    return made


def chunker_of(settings: ChunkingSettings, encoder: ScheduledDenseEncoder) -> Chunker:
    """Returns the chunker for an encoder's limit and tokens."""
    limit = min(settings.limit_tokens, encoder.max_tokens)
    [empty] = encoder.tokenize([""], TextKind.PASSAGE)
    limits = ChunkLimits(
        limit_tokens=limit,
        target_tokens=int(limit * _TARGET_SHARE),
        overlap_tokens=min(settings.overlap_tokens, limit // 4),
        added_tokens=empty.full_token_count,
    )
    return Chunker(encoder.tokenization, limits)


@dataclass(frozen=True, slots=True)
class WriteSide:
    """What indexing needs when no server runs."""

    catalog: Catalog
    indexer_of: IndexerOf
    encoder: ScheduledDenseEncoder  # the configured one
    encoders: EncoderPool
    scheduler: TokenScheduler
    sparse: ScheduledSparseEncoder | None


@asynccontextmanager
async def write_side(settings: Settings) -> AsyncIterator[WriteSide]:
    """Opens the data folder for indexing, without a server.

    Raises:
        DataFolderLocked: a server, or another run, holds the data folder.
        ModelError: the encoder cannot be used.
    """
    with scheduler_of(settings) as scheduler:
        memory = measurements_of(settings)
        encoder = await asyncio.to_thread(open_encoder, settings, scheduler, memory)
        sparse = await asyncio.to_thread(open_sparse_encoder, settings, scheduler)
        encoders = encoders_of(settings, scheduler, memory, encoder, sparse)
        async with catalog_of(settings, encoders) as catalog:
            indexers = indexer_of(settings.chunking, encoders.of, scheduler, sparse)
            yield WriteSide(catalog, indexers, encoder, encoders, scheduler, sparse)


def _open_catalog(settings: Settings, models: Models) -> Catalog:
    index = settings.index
    graph = GraphShape(index.hnsw_m, index.hnsw_ef_construct)
    if index.kind == "qdrant":
        return _qdrant_catalog(index, graph, models)
    options = IndexOptions(
        kind=ShardKind(index.kind),
        build_after_chunks=index.build_after_chunks,
        build_timeout_s=index.build_timeout_s,
        graph=graph,
        search_ef=index.hnsw_ef,
        max_collections=index.max_collections,
    )
    return EmbeddedCatalog(settings.data.folder, models, options)


def _qdrant_catalog(index: IndexSettings, graph: GraphShape, models: Models) -> Catalog:
    # qdrant-client takes most of a second to import, and only this kind needs it.
    from indexers.qdrant.catalog import QdrantCatalog  # noqa: PLC0415

    return QdrantCatalog(qdrant_options(index, graph), models)
