"""What every Index promises of conditional writes, owners and notes: the fence that indexing jobs stand on."""

from __future__ import annotations

from dataclasses import replace

import pytest

from indexers.index import Catalog, Index
from indexers.types import CollectionKey, Note
from tests.contract.index_places import Place
from tests.fakes.encoded import encoded, found_documents, hybrid

KEY = CollectionKey("tenant-a", "docs")


@pytest.fixture
async def index(catalog: Catalog) -> Index:
    """Is an empty collection."""
    return await catalog.create(KEY, {}, "for tests")


def owned(document_id: str, text: str, owner: str):
    """Returns an encoded document of an owner."""
    document = encoded(document_id, [text])
    return replace(document, document=replace(document.document, owner=owner, source_uri=f"file:///{document_id}"))


async def test_conditional_upsert_leaves_a_newer_version_alone(place: Place, index: Index) -> None:
    """A writer whose state is from before another's write changes nothing, and is told so."""
    before = index.epoch.write_sequence
    await index.upsert([encoded("a", ["newer words"])])
    result = await index.upsert([encoded("a", ["older words"]), encoded("b", ["other words"])], since=before)
    assert result.superseded == {"a"}
    (passage,) = await index.fetch(await index.chunk_ids("a"))
    assert passage.text == "newer words"
    assert await found_documents(index, hybrid(index, "other words")) >= {"b"}
    await place.settle(index)
    assert (await index.fetch(await index.chunk_ids("a")))[0].text == "newer words"


async def test_conditional_upsert_never_undoes_a_deletion(place: Place, index: Index) -> None:
    """A deletion wins over a write that began before it, whether the document was there or not (case JOB-04)."""
    await index.upsert([encoded("there", ["shared words"])])
    since = index.epoch.write_sequence
    assert await index.delete(["there", "new"]) == 1
    await place.settle(index)
    result = await index.upsert([encoded("there", ["shared words"]), encoded("new", ["shared words"])], since=since)
    assert result.superseded == {"there", "new"}
    assert (await index.count(None)).documents == 0


async def test_conditional_upsert_after_a_deletion_writes(index: Index) -> None:
    """Who read his source after the deletion may write the document again."""
    await index.delete(["new"])
    result = await index.upsert([encoded("new", ["some words"])], since=index.epoch.write_sequence)
    assert result.superseded == frozenset()
    assert result.epoch == index.epoch
    assert set(await index.look_up(["new"])) == {"new"}


async def test_conditional_delete_keeps_what_was_written_since(index: Index) -> None:
    """A document that somebody wrote meanwhile is not deleted; the others are."""
    await index.upsert([encoded("old", ["shared words"]), encoded("again", ["shared words"])])
    since = index.epoch.write_sequence
    await index.upsert([encoded("again", ["newer words"])])
    assert await index.delete(["old", "again"], since=since) == 1
    assert set(await index.look_up(["old", "again"])) == {"again"}
    # Nothing was said about the one that stays: writing it from the present state goes through.
    result = await index.upsert([encoded("again", ["newest words"])], since=index.epoch.write_sequence)
    assert result.superseded == frozenset()


async def test_look_up_says_what_is_stored(index: Index) -> None:
    """Fingerprint, owner, number of chunks and the write are those of the version that is served."""
    first = await index.upsert([owned("a", "some words", "handbook")])
    document = encoded("b", ["one two", "three four"])
    second = await index.upsert([document])
    stored = await index.look_up(["a", "b", "nobody"])
    assert set(stored) == {"a", "b"}
    assert (stored["a"].owner, stored["a"].write_sequence) == ("handbook", first.epoch.write_sequence)
    assert stored["b"].fingerprint == document.fingerprint
    assert (stored["b"].chunk_count, stored["b"].write_sequence) == (2, second.epoch.write_sequence)


async def test_owned_lists_the_owners_documents_by_id(index: Index) -> None:
    """Only an owner's own documents are listed, page by page, with where they came from."""
    theirs = [owned(f"d{number}", "some words", "handbook") for number in range(5)]
    await index.upsert([*theirs, owned("x", "some words", "wiki"), encoded("y", ["some words"])])
    await index.delete(["d3"])
    first = await index.owned("handbook", "", 2)
    assert first == [("d0", "file:///d0"), ("d1", "file:///d1")]
    assert [name for name, _ in await index.owned("handbook", "d1", 1)] == ["d2"]
    assert [name for name, _ in await index.owned("handbook", "d2", 1)] == ["d4"]
    assert await index.owned("handbook", "d4", 1) == []
    assert [name for name, _ in await index.owned("handbook", "d1", 10)] == ["d2", "d4"]
    assert await index.owned("", "", 10) == []


async def test_chunk_ids_are_those_that_can_be_fetched(place: Place, index: Index) -> None:
    """The chunks of a document are listed in order while it is there, and can no longer be fetched when it is not."""
    document = encoded("a", ["one two", "three four"])
    await index.upsert([document])
    await place.settle(index)
    ids = await index.chunk_ids("a")
    assert ids == [one.chunk.chunk_id for one in document.chunks]
    assert len(await index.fetch(ids)) == 2
    await index.delete(["a"])
    assert await index.chunk_ids("a") == []
    assert await index.fetch(ids) == []


async def test_owner_and_notes_come_back_with_the_document(place: Place, index: Index) -> None:
    """What a job or a model adds to a document is stored with it."""
    document = owned("a", "some words", "handbook")
    noted = replace(document.document, notes=(Note(0, 4, "a summary"), Note(5, 10, "what is said")))
    await index.upsert([replace(document, document=noted)])
    await place.settle(index)
    assert await index.get_document("a") == noted
