"""Learned term weights in the place of BM25: in every store, in a definition, and through the whole request path."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from encoders.learned import LearnedStatistics, stored_weights
from encoders.types import SparseVector, WorkClass
from indexers.catalog import EmbeddedCatalog
from indexers.errors import ModelMismatch
from indexers.index import Catalog, Index
from indexers.models import OneModel
from indexers.options import IndexOptions, ShardKind, SparseModel
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.options import QdrantOptions
from indexers.types import CollectionKey, Document, EncodedDocument, SearchQuery
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.live import LiveSettings
from retrieval.server.app import App, build
from retrieval.settings.load import Loaded, load_settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Mode, RetrieveRequest
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded
from tests.fakes.qdrant_servicer import FakeQdrant, serving
from tests.fakes.tiny_models import make_tiny_masked_lm

KEY = CollectionKey("acme", "docs")
LEARNED = replace(MODEL, sparse=SparseModel("tests/splade", "1"))
TEXTS = {"a": "red apples fall", "b": "green pears hang", "c": "red pears"}


def weighed(text: str) -> SparseVector:
    """Weighs each word by its length."""
    words = sorted({zlib.crc32(word.encode()) % 5_000: len(word) / 3 for word in text.split()}.items())
    return SparseVector(
        np.array([word for word, _ in words], np.uint32), np.array([weight for _, weight in words], np.float32)
    )


def document(name: str, text: str) -> EncodedDocument:
    """Makes a document of one chunk with learned weights."""
    made = encoded(name, [text])
    return replace(made, chunks=tuple(replace(chunk, terms=stored_weights(weighed(text))) for chunk in made.chunks))


@asynccontextmanager
async def opened(store: str, root: Path) -> AsyncIterator[Catalog]:
    """Opens an empty catalog for learned weights."""
    if store == "qdrant":
        async with serving(FakeQdrant()) as port:
            server = QdrantCatalog(QdrantOptions("127.0.0.1", port, build_automatically=False), OneModel(LEARNED))
            yield server
            await server.close()
        return
    catalog = EmbeddedCatalog(root, OneModel(LEARNED), IndexOptions(kind=ShardKind(store), build_automatically=False))
    yield catalog
    await catalog.close()


async def scores(index: Index, query: SparseVector) -> dict[str, float]:
    """Searches the sparse branch alone; returns the score of each document."""
    found = await index.search(SearchQuery(None, query, 10), None)
    passages = await index.fetch(found.chunk_ids)
    return {passage.document_id: float(score) for passage, score in zip(passages, found.sparse_scores, strict=True)}


@pytest.mark.parametrize("store", ["exact", "edge", "qdrant"])
async def test_scores_are_dot_products_of_the_weights_in_every_store(store: str, tmp_path: Path) -> None:
    """Before a generation, in one, and beside one, a score is that of the model's weights, and within the bound."""
    query = SparseVector(weighed("red pears").indices, np.array([0.5, 2.0], np.float32))
    weights = dict(zip(query.indices.tolist(), query.values.tolist(), strict=True))

    def expected(text: str) -> float:
        vector = weighed(text)
        return sum(weights.get(word, 0.0) * weight for word, weight in zip(vector.indices, vector.values, strict=True))

    async with opened(store, tmp_path) as catalog:
        index = await catalog.create(KEY, {}, "")
        await index.upsert([document(name, text) for name, text in TEXTS.items()])
        assert await scores(index, query) == pytest.approx({n: expected(t) for n, t in TEXTS.items()}, abs=2e-3)
        await index.build()
        found = await scores(index, query)
        assert found == pytest.approx({name: expected(text) for name, text in TEXTS.items()}, abs=2e-3)
        assert isinstance(index.statistics, LearnedStatistics)
        assert max(found.values()) == pytest.approx(index.statistics.upper_bound(query), abs=2e-3)
        await index.upsert([document("d", "red red pears and more")])
        assert (await scores(index, query))["d"] == pytest.approx(expected("red pears"), abs=2e-3)


@pytest.mark.parametrize(("made", "asked"), [(LEARNED, MODEL), (MODEL, LEARNED)])
async def test_collection_of_another_kind_of_weights_is_refused(tmp_path: Path, made: object, asked: object) -> None:
    """VEC-04: BM25 counts are never read as learned weights, nor the other way round."""
    for model, refused in ((made, False), (asked, True)):
        catalog = EmbeddedCatalog(tmp_path, OneModel(model), IndexOptions(kind=ShardKind.EXACT))  # type: ignore[arg-type]
        if refused:
            with pytest.raises(ModelMismatch, match="tests/splade@1"):
                await catalog.open(KEY)
        else:
            await catalog.create(KEY, {}, "")
        await catalog.close()


@asynccontextmanager
async def served(tmp_path: Path) -> AsyncIterator[App]:
    """Builds the application with a tiny SPLADE model and three documents."""
    pytest.importorskip("fastembed", reason="an extra: splade")
    model = make_tiny_masked_lm(tmp_path / "splade")

    def load() -> Loaded:
        changed = {"data.folder": str(tmp_path / "data"), "server.port": 0, "encoders.sparse.model": str(model)}
        return load_settings(None, {}, changed)

    async with build(LiveSettings(load(), load)) as app:
        index = await app.engines.catalog.create(KEY, {}, "")
        texts = {"valve": "valve torque", "pump": "pump seal", "soup": "soup of cats"}
        await app.indexer_of(index).upsert([Document(n, "", text) for n, text in texts.items()], WorkClass.BULK)
        yield app


async def test_splade_model_serves_the_sparse_branch(tmp_path: Path) -> None:
    """A setting changes the branch from indexing to reply; scores are shares of a bound, a cut question is flagged."""
    async with served(tmp_path) as app:
        index = await app.engines.catalog.open(KEY)
        assert index.definition.sparse_model_id == str(tmp_path / "splade")
        assert [model.role for model in app.models] == ["dense", "sparse"]
        thresholds = resolve(load_settings(None, {}, {}).settings, Overrides(mode=Mode.SPARSE))
        for query in ("pump seal", "pump " * 200):
            request = RetrieveRequest("r", "acme", "docs", query, None, thresholds)
            reply = await app.pipeline.retrieve(request, StageClock(), Deadline.after(10))
            assert all(0.0 < hit.score <= 1.0 for hit in reply.hits)
            assert ("query_truncated" in reply.ledger.degraded) is (query != "pump seal")
