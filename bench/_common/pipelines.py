"""The product's request path in this process, over collections in a temporary folder and without a server around it."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from bench._common.engines import Encoders
from encoders.types import AsyncDenseEncoder
from indexers.catalog import EmbeddedCatalog
from indexers.index import Catalog, Index
from indexers.ingest import Indexer
from indexers.models import OneModel
from indexers.options import DenseModel, IndexOptions, ShardKind
from indexers.parsing.parsed import ParsedDocument
from indexers.reports import IndexReport
from indexers.types import CollectionKey, Document, FieldType, Metadata
from rerank.types import AsyncReranker
from retrieval.admission import Admission
from retrieval.caching.open import open_caches
from retrieval.caching.shared import NoSharedTier
from retrieval.collection_encoders import OneEncoder
from retrieval.dispatch.open import dispatcher_over
from retrieval.generation.extractive import ExtractiveBackend
from retrieval.live import LiveSettings
from retrieval.pipeline import Engines, Pipeline
from retrieval.settings import Settings
from retrieval.settings.load import Loaded
from retrieval.token_counters import RememberingCounter

KEY = CollectionKey("default", "bench")  # the tenant of a server without keys


@dataclass(frozen=True, slots=True)
class RequestPath:
    """A pipeline with its catalog."""

    pipeline: Pipeline
    without_cross_encoder: Pipeline
    catalog: Catalog


@asynccontextmanager
async def open_request_path(
    settings: Settings, encoders: Encoders, encoder: AsyncDenseEncoder, reranker: AsyncReranker | None = None
) -> AsyncIterator[RequestPath]:
    """Opens an empty catalog in a temporary folder, which is removed afterwards, and the pipeline over it."""
    with tempfile.TemporaryDirectory(prefix="headrace-bench-") as folder:
        async with request_path_over(Path(folder), settings, encoders, encoder, reranker) as opened:
            yield opened


@asynccontextmanager
async def request_path_over(
    folder: Path,
    settings: Settings,
    encoders: Encoders,
    encoder: AsyncDenseEncoder,
    reranker: AsyncReranker | None = None,
) -> AsyncIterator[RequestPath]:
    """Opens the catalog of a data folder, and the pipeline over it."""
    catalog = open_catalog(settings, encoder, folder)
    try:
        loaded = Loaded(_without_caches(settings), {}, None)
        live = LiveSettings(loaded, lambda: loaded)
        counter = RememberingCounter(encoders.dense.tokenization, knows_passages=True)
        engines = Engines(
            catalog=catalog,
            encoders=OneEncoder(encoder),
            caches=open_caches(live, NoSharedTier()),
            reranker=reranker,
            counter=counter,
            dispatcher=dispatcher_over(ExtractiveBackend("extractive", 8192, counter, None, lambda: 3)),
        )
        admission = settings.admission
        gate = Admission(admission.max_concurrent, admission.max_queued, admission.max_wait_ms)
        yield RequestPath(Pipeline(engines, gate, live), Pipeline(replace(engines, reranker=None), gate, live), catalog)
    finally:
        await catalog.close()


def _without_caches(settings: Settings) -> Settings:
    sizes = ("embeddings_bytes", "token_codes_bytes", "pair_scores_bytes", "results_bytes")
    return settings.model_copy(update={"cache": settings.cache.model_copy(update=dict.fromkeys(sizes, 0))})


def open_catalog(settings: Settings, encoder: AsyncDenseEncoder, folder: Path) -> EmbeddedCatalog:
    """Opens the embedded catalog as the settings describe it; builds are left to the tool."""
    options = IndexOptions(
        kind=ShardKind(settings.index.kind), build_automatically=False, search_ef=settings.index.hnsw_ef
    )
    model = DenseModel(encoder.model_id, encoder.revision, encoder.dim, encoder.codec)
    return EmbeddedCatalog(folder, OneModel(model), options)


async def index_documents(
    catalog: Catalog,
    documents: Sequence[Document],
    fields: Mapping[str, FieldType],
    encoders: Encoders,
    encoder: AsyncDenseEncoder,
) -> tuple[Index, IndexReport]:
    """Creates the collection, indexes the documents, and builds a generation of them."""
    index = await catalog.create(KEY, dict(fields), "")
    report = await Indexer(index, encoder, encoders.chunker).run(map(ParsedDocument, documents))
    await index.build()
    return index, report


def field_type(name: str, metadatas: Sequence[Metadata]) -> FieldType:
    """Returns the type that holds every value of a field; KEYWORD when kinds are mixed or nothing has the field."""
    values = [one for metadata in metadatas if name in metadata for one in _values(metadata[name])]
    kinds = {type(value) for value in values}
    return _TYPES.get(kinds.pop(), FieldType.KEYWORD) if len(kinds) == 1 else FieldType.KEYWORD


_TYPES: Mapping[type, FieldType] = {bool: FieldType.BOOL, int: FieldType.INTEGER, float: FieldType.FLOAT}


def _values(value: object) -> tuple[object, ...]:
    return value if isinstance(value, tuple) else (value,)
