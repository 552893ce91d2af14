"""A collection on a server moves to another model while it serves and is written, and back."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace

import numpy as np
import pytest

from indexers.errors import BuildFailed, CollectionMoved, IndexUnavailable
from indexers.index import Index
from indexers.migrating.migration import Built, Destination, Encode
from indexers.options import DenseModel
from indexers.qdrant.catalog import QdrantCatalog
from indexers.qdrant.options import QdrantOptions
from indexers.types import CollectionKey, Counts, Document, EncodedDocument, SearchQuery
from tests.contract.index_places import MODEL
from tests.fakes.encoded import DIM, encoded, found_documents, hybrid, token_vectors, word_vector
from tests.fakes.models import SomeModels
from tests.fakes.qdrant_servicer import FakeQdrant, serving

KEY = CollectionKey("acme", "docs")
OTHER = replace(MODEL, model_id="tests/more", dim=2 * DIM)
THIRD = replace(MODEL, model_id="tests/third", dim=3 * DIM)


class Encoder:
    """Encodes documents for a model, one chunk a line, and counts them."""

    def __init__(self, dim: int, mark: str) -> None:
        self.dim = dim
        self.mark = mark
        self.encoded: list[str] = []
        self.then: list[Encode] = []  # what happens meanwhile

    async def __call__(self, documents: Sequence[Document]) -> list[EncodedDocument]:
        """Returns the documents encoded."""
        self.encoded += [one.document_id for one in documents]
        if self.then:
            await self.then.pop(0)(documents)
        return [self._one(one) for one in documents]

    def _one(self, document: Document) -> EncodedDocument:
        made = encoded(document.document_id, document.text.split("\n"), fingerprint=self.mark, dim=self.dim)
        return replace(made, document=document)


def _to(model: DenseModel, encoder: Encoder) -> Destination:
    return Destination(model, "" if model is MODEL else model.model_id, encoder, token_vectors=True)


async def _nothing(_: Built) -> None:
    """Checks nothing."""


@pytest.fixture
def fake() -> FakeQdrant:
    """Is the state of the server."""
    return FakeQdrant()


@pytest.fixture
async def catalogs(fake: FakeQdrant) -> AsyncIterator[list[QdrantCatalog]]:
    """Is what two processes have open; each begins with the first model."""
    async with AsyncExitStack() as stack:
        port = await stack.enter_async_context(serving(fake))
        options = QdrantOptions("127.0.0.1", port, timeout_s=1.0, lease_s=1.0, build_automatically=False)
        opened = [QdrantCatalog(options, SomeModels(MODEL, OTHER, THIRD)) for _ in range(2)]
        for one in opened:
            stack.push_async_callback(one.close)
        yield opened


async def _filled(catalog: QdrantCatalog) -> Index:
    index = await catalog.create(KEY, {}, "about things")
    await index.upsert([encoded(f"d{n}", ["shared words", f"w{n}"]) for n in range(40)])
    await index.build()
    return index


async def _found(index: Index) -> set[str]:
    query = SearchQuery(word_vector("shared words", index.definition.dim), None, 200)
    return await found_documents(index, query)


async def test_one_batch_is_encoded_while_the_last_is_written(fake: FakeQdrant, catalogs: list[QdrantCatalog]) -> None:
    """Neither the model nor the server waits for the other."""
    await _filled(catalogs[0])
    encoding = asyncio.Event()
    more = Encoder(2 * DIM, "more")

    async def begin(_: Sequence[Document]) -> list[EncodedDocument]:
        fake.before["Upsert"] = encoding  # nothing of this batch is written before the next one is encoded
        return []

    async def go_on(_: Sequence[Document]) -> list[EncodedDocument]:
        encoding.set()
        return []

    more.then = [begin, go_on]
    await catalogs[0].migration(KEY).run(_to(OTHER, more), _nothing)
    assert len(await _found(await catalogs[0].open(KEY))) == 40


async def test_collection_moves_to_another_model_and_back(fake: FakeQdrant, catalogs: list[QdrantCatalog]) -> None:
    """Everything is encoded once; what another process writes meanwhile is there too, before and after going back."""
    index = await _filled(catalogs[0])
    writer = await catalogs[1].open(KEY)
    more = Encoder(2 * DIM, "more")

    async def write(_: Sequence[Document]) -> list[EncodedDocument]:
        await writer.upsert([encoded("late", ["shared late"]), encoded("d1", ["shared changed"])])
        await writer.delete(["d2"])
        return []

    more.then = [write]
    seen: list[tuple[int, int]] = []
    migration = catalogs[0].migration(KEY)

    async def check(built: Built) -> None:
        vector = word_vector("shared words", 2 * DIM)
        exact, found = [await built.search(SearchQuery(vector, None, 20, one)) for one in (True, False)]
        assert exact.chunk_ids == found.chunk_ids
        assert await _found(index) >= {"late", "d1"}  # the old one serves

    await migration.run(_to(OTHER, more), check, lambda total, done: seen.append((total, done)))
    assert seen[-1] == (40, 40)
    assert len(more.encoded) <= 40 + 2 * 2
    moved = await catalogs[0].open(KEY)
    assert (moved.definition.dim, moved.definition.description) == (2 * DIM, "about things")
    assert await _found(moved) == (expected := {f"d{n}" for n in range(40)} - {"d2"} | {"late"})
    assert (await moved.look_up(["d0"]))["d0"].fingerprint == "more"
    for old in (index, writer):  # requests that began before go on with what served before, in every process
        assert await _found(old) == expected
        with pytest.raises(CollectionMoved):  # who asks for the newest state is told to open it again
            await old.current_epoch()
        assert len(await old.late_scores(token_vectors("shared"), await old.fetch(await old.chunk_ids("d3")))) == 2
    with pytest.raises(CollectionMoved):
        await writer.upsert([encoded("wrong", ["words"])])  # it still has the old model
    await moved.upsert([encoded("after", ["shared after"], dim=2 * DIM)])
    await moved.build()
    back = Encoder(DIM, "back")
    await migration.run(_to(MODEL, back), _nothing)
    assert set(back.encoded) == {"after"}
    returned = await catalogs[0].open(KEY)
    assert await _found(returned) == expected | {"after"}
    assert await found_documents(returned, hybrid(returned, "w7", 200)) >= {"d7"}
    assert await (await catalogs[1].open(KEY)).count(None) == await returned.count(None)
    await migration.forget()
    assert len(fake.collections) == 3
    assert fake.without_tenant == []


async def test_migration_that_broke_off_goes_on(catalogs: list[QdrantCatalog]) -> None:
    """What is encoded is not encoded again, and a build in between harms neither."""
    index = await _filled(catalogs[0])
    more = Encoder(2 * DIM, "more")

    async def fail(_: Sequence[Document]) -> list[EncodedDocument]:
        raise IndexUnavailable("docs", "as told")

    async def go_on(_: Sequence[Document]) -> list[EncodedDocument]:
        return []

    more.then = [go_on, fail]
    migration = catalogs[0].migration(KEY)
    with pytest.raises(IndexUnavailable):
        await migration.run(_to(OTHER, more), _nothing)
    assert len(more.encoded) == 40
    await index.upsert([encoded("d0", ["shared anew"])])
    await index.build()
    more.encoded.clear()
    await catalogs[1].migration(KEY).run(_to(OTHER, more), _nothing)
    assert len(more.encoded) == 8 + 1  # the batch that failed, and what has changed
    assert len(await _found(await catalogs[0].open(KEY))) == 40


async def test_migration_that_fails_its_check_changes_nothing(fake: FakeQdrant, catalogs: list[QdrantCatalog]) -> None:
    """The old one serves on, and what was built can be given up."""
    index = await _filled(catalogs[0])
    before = await index.current_epoch()

    async def refuse(_: Built) -> None:
        raise BuildFailed("docs", "recall is 0.5")

    migration = catalogs[0].migration(KEY)
    with pytest.raises(BuildFailed, match="recall"):
        await migration.run(_to(OTHER, Encoder(2 * DIM, "more")), refuse)
    assert await index.current_epoch() == before
    await index.upsert([encoded("after", ["shared after"])])
    await migration.cancel()
    assert len(fake.collections) == 3
    assert await index.count(None) == Counts(41, 81)


@pytest.mark.parametrize("again", [False, True])
async def test_change_over_that_died_is_completed(fake: FakeQdrant, catalogs: list[QdrantCatalog], again: bool) -> None:
    """When the aliases have moved and nothing after them happened, whoever opens or migrates the collection ends it."""
    await _filled(catalogs[0])
    migration = catalogs[0].migration(KEY)

    async def last(_: Built) -> None:
        fake.fails_after_alias = True

    with pytest.raises(IndexUnavailable):
        await migration.run(_to(OTHER, Encoder(2 * DIM, "more")), last)
    fake.fails_after_alias = False
    if again:
        encoder = Encoder(2 * DIM, "more")
        await migration.run(_to(OTHER, encoder), _nothing)
        assert encoder.encoded == []
    moved = await catalogs[1].open(KEY)
    assert len(await _found(moved)) == 40
    assert (await catalogs[1].migration(KEY).standing()).previous is not None
    assert np.isfinite((await moved.search(SearchQuery(word_vector("w3", 2 * DIM), None, 5), None)).dense_scores).all()


async def test_deleted_collection_leaves_nothing_of_its_migration(
    fake: FakeQdrant, catalogs: list[QdrantCatalog]
) -> None:
    """What was built, and what is kept to go back to, is removed with the collection."""
    await _filled(catalogs[0])
    await catalogs[0].migration(KEY).run(_to(OTHER, Encoder(2 * DIM, "more")), _nothing)
    await catalogs[0].open(KEY)
    await catalogs[0].delete(KEY)
    assert set(fake.collections) == {"headrace.collections"}
    assert not fake.collections["headrace.collections"].points


async def test_change_over_that_died_leaves_nothing_behind(fake: FakeQdrant, catalogs: list[QdrantCatalog]) -> None:
    """What was kept from an earlier move goes also when a later one is brought to its end by somebody else."""
    await _filled(catalogs[0])
    migration = catalogs[0].migration(KEY)
    await migration.run(_to(OTHER, Encoder(2 * DIM, "more")), _nothing)

    async def last(_: Built) -> None:
        fake.fails_after_alias = True

    with pytest.raises(IndexUnavailable):
        await migration.run(_to(THIRD, Encoder(3 * DIM, "third")), last)
    fake.fails_after_alias = False
    await migration.run(_to(THIRD, Encoder(3 * DIM, "third")), _nothing)
    assert (await catalogs[1].open(KEY)).definition.dim == 3 * DIM
    await migration.forget()
    assert len(fake.collections) == 3
