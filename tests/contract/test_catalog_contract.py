"""What every Catalog promises: names, tenants, schemas, reopening."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

import pytest

from indexers.errors import CollectionExists, CollectionNotFound, InvalidName, SchemaConflict, TypeMismatch
from indexers.filters import Filter, MatchAny
from indexers.index import Catalog
from indexers.schema import coerce_filter
from indexers.types import CollectionKey, Counts, FieldType
from tests.contract.index_places import MODEL, Place
from tests.fakes.encoded import encoded, found_documents, hybrid

A = CollectionKey("tenant-a", "docs")
B = CollectionKey("tenant-b", "docs")


async def test_create_makes_an_empty_collection(catalog: Catalog) -> None:
    """A new collection has its definition, no documents, and is the tenant's only one."""
    index = await catalog.create(A, {"year": FieldType.INTEGER}, "about things")
    definition = index.definition
    assert (definition.key, definition.fields, definition.description) == (
        A,
        {"year": FieldType.INTEGER},
        "about things",
    )
    assert (definition.dense_model_id, definition.dense_revision, definition.dim) == (
        MODEL.model_id,
        MODEL.revision,
        MODEL.dim,
    )
    assert await index.count(None) == Counts(0, 0)
    assert [one.definition.key for one in await catalog.list("tenant-a")] == [A]
    with pytest.raises(CollectionExists):
        await catalog.create(A, {}, "")


async def test_tenants_do_not_see_each_other(catalog: Catalog) -> None:
    """Another tenant's collection looks exactly like one that does not exist, and its data is never found (TEN-03)."""
    index = await catalog.create(A, {}, "")
    await index.upsert([encoded("secret", ["hidden words"])])
    chunk_ids = (await index.search(hybrid(index, "hidden words"), None)).chunk_ids
    said = []
    for key in (B, CollectionKey("tenant-b", "random")):
        for call in (catalog.open(key), catalog.delete(key), catalog.update(key, {}, "x")):
            with pytest.raises(CollectionNotFound) as caught:
                await call
            said.append(str(caught.value).replace(key.collection, "NAME"))
    assert len(set(said)) == 1
    assert await catalog.list("tenant-b") == []
    other = await catalog.create(B, {}, "")
    assert await other.fetch(chunk_ids) == []
    assert await other.get_document("secret") is None
    assert await other.delete(["secret"]) == 0
    assert await found_documents(other, hybrid(other, "hidden words")) == set()
    assert await index.count(None) == Counts(1, 1)


@pytest.mark.parametrize("name", ["", "..", "a/b", "A", "ä", "-a", "a" * 64, "a\x00", ".lock", "a.b", "a\n"])
async def test_names_outside_the_bounds_are_refused(catalog: Catalog, name: str) -> None:
    """No name leaves its folder; opening what cannot exist is the same as opening what does not exist."""
    for key in (CollectionKey("tenant-a", name), CollectionKey(name, "docs")):
        with pytest.raises(InvalidName):
            await catalog.create(key, {}, "")
        with pytest.raises(CollectionNotFound):
            await catalog.open(key)
    with pytest.raises(InvalidName):
        await catalog.create(A, {f"{name}.": FieldType.KEYWORD}, "")


async def test_reopened_catalog_serves_the_same(place: Place, tmp_path: Path) -> None:
    """What was acknowledged is there after a restart: documents, epoch, rankings and scores."""
    root = tmp_path / "reopened"
    async with place.open(root) as first:
        index = await first.create(A, {"lang": FieldType.KEYWORD}, "kept")
        await index.upsert([encoded(f"d{n}", [f"alpha x{n}", "beta"], {"lang": "en"}) for n in range(20)])
        await place.settle(index)
        await index.upsert([encoded("late", ["alpha late"]), encoded("d3", ["alpha again"])])
        await index.delete(["d4"])
        before = (index.epoch, await index.count(None))
        expected = await index.search(hybrid(index, "alpha beta", 8), None)
    async with place.open(root) as second:
        index = await second.open(A)
        assert (index.epoch, await index.count(None)) == before
        assert index.definition.description == "kept"
        if place.builds:
            candidates = await index.search(hybrid(index, "alpha beta", 8), None)
            scores = dict(zip(candidates.chunk_ids, candidates.dense_scores.tolist(), strict=True))
            assert scores == dict(zip(expected.chunk_ids, expected.dense_scores.tolist(), strict=True))
        assert "late" in await found_documents(index, hybrid(index, "alpha late", 30))
        assert "d4" not in await found_documents(index, hybrid(index, "alpha", 60))


async def test_open_at_once_gives_one_index(place: Place, tmp_path: Path) -> None:
    """Callers that open a collection at the same time share one opening."""
    root = tmp_path / "shared"
    async with place.open(root) as first:
        await first.create(A, {}, "")
    async with place.open(root) as second:
        opened = await asyncio.gather(*(second.open(A) for _ in range(5)))
        assert len({id(index) for index in opened}) == 1


async def test_update_makes_new_fields_filterable(place: Place, catalog: Catalog) -> None:
    """A field declared later finds documents that were stored before, coerced; without new fields the text changes."""
    index = await catalog.create(A, {"lang": FieldType.KEYWORD}, "first")
    documents = [encoded("one", ["same words"], {"year": "2021"}), encoded("two", ["same words"], {"year": 2022.0})]
    await index.upsert(documents)
    await place.settle(index)
    updated = await catalog.update(A, {"year": FieldType.INTEGER}, "second")
    assert updated.definition.fields == {"lang": FieldType.KEYWORD, "year": FieldType.INTEGER}
    assert updated.definition.description == "second"
    asked = coerce_filter(Filter(must=(MatchAny("year", (2021,)),)), updated.definition.fields)
    assert await found_documents(updated, hybrid(updated, "same words"), asked) == {"one"}
    await place.settle(updated)
    assert await found_documents(updated, hybrid(updated, "same words"), asked) == {"one"}
    assert (await catalog.update(A, {}, None)).definition.description == "second"


async def test_update_refuses_what_stands_against_it(catalog: Catalog) -> None:
    """A field keeps its type, and stored values that cannot become the new type are an error that names a document."""
    index = await catalog.create(A, {"lang": FieldType.KEYWORD}, "")
    await index.upsert([encoded("odd", ["words"], {"year": "unknown"})])
    with pytest.raises(SchemaConflict):
        await catalog.update(A, {"lang": FieldType.INTEGER}, None)
    with pytest.raises(TypeMismatch, match="odd"):
        await catalog.update(A, {"year": FieldType.INTEGER}, "never stored")
    assert (await catalog.open(A)).definition.fields == {"lang": FieldType.KEYWORD}
    assert (await catalog.open(A)).definition.description == ""


async def test_delete_removes_a_collection_whole(place: Place, catalog: Catalog) -> None:
    """A deleted collection is gone at once, and a new one of its name starts empty."""
    index = await catalog.create(A, {}, "")
    await index.upsert([encoded("a", ["words"])])
    await place.settle(index)
    query = hybrid(index, "words")
    await catalog.delete(A)
    with pytest.raises(CollectionNotFound):
        await catalog.open(A)
    with pytest.raises(CollectionNotFound):
        await index.search(query, None)
    again = await catalog.create(A, {}, "")
    assert await again.count(None) == Counts(0, 0)
    assert await again.get_document("a") is None


async def test_delete_lets_nobody_keep_the_old_collection(place: Place, catalog: Catalog) -> None:
    """Who opens a collection while it is deleted gets it or is told that it is gone; a new one of its name is new."""
    index = await catalog.create(A, {}, "")
    await index.upsert([encoded("a", ["words"])])
    deleting = asyncio.create_task(catalog.delete(A))
    while not deleting.done():
        with contextlib.suppress(CollectionNotFound):
            await catalog.open(A)
        await asyncio.sleep(0)
    await deleting
    again = await catalog.create(A, {}, "")
    assert await again.count(None) == Counts(0, 0)
    assert await again.get_document("a") is None
