"""What every Index promises, whatever it stores in."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from encoders.term_statistics import document_vector
from indexers.errors import FilterEmpty, InvalidDocument, InvalidInput, InvalidPageToken, InvalidVector
from indexers.filters import Filter, MatchAny
from indexers.index import Catalog, Index
from indexers.types import CollectionKey, Counts, DocumentSummary, FieldType, SearchQuery
from tests.contract.index_places import Place
from tests.fakes.encoded import DIM, encoded, found_documents, hybrid, term_counts, word_vector

KEY = CollectionKey("tenant-a", "docs")
FIELDS = {"lang": FieldType.KEYWORD, "year": FieldType.INTEGER}


@pytest.fixture
async def index(catalog: Catalog) -> Index:
    """Is an empty collection."""
    return await catalog.create(KEY, FIELDS, "for tests")


async def test_upsert_is_found_by_the_next_search(index: Index) -> None:
    """What an acknowledged write added is found, by both branches, and fetched whole."""
    await index.upsert([encoded("a", ["red apples fall", "green pears hang"], {"lang": "en", "note": "kept"})])
    candidates = await index.search(hybrid(index, "green pears"), None)
    best = candidates.chunk_ids[int(np.argmin(np.where(candidates.dense_ranks < 0, 99, candidates.dense_ranks)))]
    (passage,) = await index.fetch([best])
    assert (passage.document_id, passage.text, passage.start, passage.end) == ("a", "green pears hang", 16, 32)
    assert (passage.title, passage.heading_path, passage.ordinal) == ("Title of a", ("Part", "1"), 1)
    assert passage.metadata == {"lang": "en", "note": "kept"}


async def test_write_raises_the_epoch_before_it_is_acknowledged(index: Index) -> None:
    """Each write call that changed something raises the write sequence, one that changed nothing does not."""
    before = index.epoch
    after = (await index.upsert([encoded("a", ["one two"])])).epoch
    assert after == index.epoch
    assert after.write_sequence > before.write_sequence
    assert await index.delete([]) == 0
    assert (await index.upsert([encoded("a", ["three"])], since=before.write_sequence)).superseded == {"a"}
    assert index.epoch == after
    assert await index.delete(["a"]) == 1
    assert index.epoch.write_sequence > after.write_sequence


async def test_upsert_replaces_all_chunks_of_a_document(place: Place, index: Index) -> None:
    """After a document is replaced, none of its old chunks is found or fetched (case JOB-02)."""
    await index.upsert([encoded("a", [f"alpha old part{n}" for n in range(10)]), encoded("b", ["alpha other"])])
    await place.settle(index)
    old = await index.search(hybrid(index, "alpha old", 50), None)
    await index.upsert([encoded("a", [f"alpha new part{n}" for n in range(6)])])
    passages = await index.fetch((await index.search(hybrid(index, "alpha old new", 50), None)).chunk_ids)
    assert sorted(p.text for p in passages if p.document_id == "a") == [f"alpha new part{n}" for n in range(6)]
    assert {p.document_id for p in await index.fetch(old.chunk_ids)} <= {"b"}
    assert await index.count(None) == Counts(documents=2, chunks=7)


async def test_upsert_of_the_same_content_keeps_the_chunk_ids(place: Place, index: Index) -> None:
    """A document that is written again unchanged stays found once."""
    document = encoded("a", ["alpha beta", "gamma delta"])
    await index.upsert([document])
    await place.settle(index)
    await index.upsert([replace(document, document=replace(document.document, title="New title"))])
    candidates = await index.search(hybrid(index, "alpha beta gamma", 10), None)
    assert sorted(candidates.chunk_ids) == sorted(one.chunk.chunk_id for one in document.chunks)
    assert {p.title for p in await index.fetch(candidates.chunk_ids)} == {"New title"}


async def test_delete_hides_a_document_at_once(place: Place, index: Index) -> None:
    """From the reply on, a deleted document is neither found nor fetched nor counted (case JOB-03)."""
    await index.upsert([encoded("a", ["shared words here"]), encoded("b", ["shared words there"])])
    await place.settle(index)
    before = await index.search(hybrid(index, "shared words"), None)
    assert await index.delete(["a", "a", "unknown"]) == 1
    assert await found_documents(index, hybrid(index, "shared words")) == {"b"}
    assert {p.document_id for p in await index.fetch(before.chunk_ids)} == {"b"}
    assert await index.get_document("a") is None
    stored = await index.look_up(["a", "b"])
    assert {name: one.fingerprint for name, one in stored.items()} == {
        "b": encoded("b", ["shared words there"]).fingerprint
    }
    assert await index.count(None) == Counts(documents=1, chunks=1)


async def test_delete_where_deletes_what_passes(place: Place, index: Index) -> None:
    """A filtered delete removes exactly the documents that pass."""
    await index.upsert([encoded(f"d{n}", ["same text"], {"year": 2020 + n % 2}) for n in range(6)])
    await place.settle(index)
    assert await index.delete_where(Filter(must=(MatchAny("year", (2021,)),))) == 3
    assert await found_documents(index, hybrid(index, "same text")) == {"d0", "d2", "d4"}


async def test_delete_where_refuses_an_empty_filter(index: Index) -> None:
    """A filter without conditions would delete everything, so it is an error and deletes nothing (case VEC-10)."""
    await index.upsert([encoded("a", ["text"])])
    with pytest.raises(FilterEmpty):
        await index.delete_where(Filter())
    with pytest.raises(FilterEmpty):
        await index.delete_where(Filter(must=(Filter(),)))
    with pytest.raises(FilterEmpty):
        await index.delete_where(Filter(must_not=(MatchAny("year", ()),)))
    assert await index.count(None) == Counts(1, 1)


async def test_upsert_refuses_vectors_that_are_not_numbers(index: Index) -> None:
    """NaN, Inf, zero and misshapen vectors fail the whole call, naming the documents (case VEC-01)."""
    await index.upsert([encoded("good", ["fine text"])])

    def spoiled(document_id: str, vector: object) -> object:
        document = encoded(document_id, ["some text"])
        chunk = replace(document.chunks[0], dense=np.asarray(vector, dtype=np.float32))
        return replace(document, chunks=(chunk,))

    one = np.eye(DIM)[0]
    bad = {
        "nan": np.where(one, np.nan, 0),
        "inf": np.where(one, np.inf, 0),
        "zero": one * 0,
        "long": one * 3,
        "short": one[:-1],
    }
    with pytest.raises(InvalidVector) as caught:
        await index.upsert([encoded("d", ["fine"]), *(spoiled(*item) for item in bad.items())])  # type: ignore[list-item]
    assert all(repr(name) in str(caught.value) for name in bad)
    assert "'d'" not in str(caught.value)
    assert await index.count(None) == Counts(1, 1)


@pytest.mark.parametrize("value", [np.nan, np.inf])
async def test_search_refuses_vectors_that_are_not_numbers(index: Index, value: float) -> None:
    """A query vector with NaN or Inf, or of another dimension, is an error and not an empty result (case VEC-01)."""
    await index.upsert([encoded("good", ["fine text"])])
    query = hybrid(index, "fine")
    assert query.dense is not None
    assert query.sparse is not None
    with pytest.raises(InvalidVector):
        await index.search(replace(query, dense=np.where(query.dense > 0, value, 0).astype(np.float32)), None)
    with pytest.raises(InvalidVector):
        await index.search(replace(query, dense=query.dense[:-1]), None)
    sparse = replace(query.sparse, values=np.full(len(query.sparse.values), value, dtype=np.float32))
    with pytest.raises(InvalidVector):
        await index.search(replace(query, sparse=sparse), None)


async def test_search_refuses_limits_and_questions_without_meaning(index: Index) -> None:
    """A limit out of bounds and a query of no branch are errors."""
    for limit in (0, -1, 10**9):
        with pytest.raises(InvalidInput):
            await index.search(SearchQuery(word_vector("a"), None, limit), None)
    with pytest.raises(InvalidInput):
        await index.search(SearchQuery(None, None, 10), None)


async def test_upsert_refuses_an_id_that_is_there_twice(index: Index) -> None:
    """Two documents of one id in one call are an error, and neither is stored."""
    with pytest.raises(InvalidDocument) as caught:
        await index.upsert([encoded("a", ["one"]), encoded("b", ["two"]), encoded("a", ["three"])])
    assert caught.value.field == "documents[2].document_id"
    assert await index.count(None) == Counts(0, 0)


async def test_empty_collection_finds_nothing(place: Place, index: Index) -> None:
    """Searching, listing, counting and building an empty collection work."""
    await place.settle(index)
    assert (await index.search(hybrid(index, "anything"), None)).chunk_ids == ()
    assert (await index.list_documents(10, "")).documents == ()
    assert await index.count(None) == Counts(0, 0)
    assert await index.fetch(["00000000-0000-4000-8000-000000000000"]) == []


async def test_document_without_chunks_is_kept_and_not_found(place: Place, index: Index) -> None:
    """A document without text can be stored, listed and fetched."""
    await index.upsert([encoded("empty", [])])
    await place.settle(index)
    document = await index.get_document("empty")
    assert document is not None
    assert document.text == ""
    assert await index.count(None) == Counts(1, 0)


async def test_search_completes_the_scores_of_both_branches(place: Place, index: Index) -> None:
    """Every candidate has the cosine and the BM25 score of its stored vectors, whichever branch found it."""
    texts = [f"{a} {b} {c}" for a in ("red", "green") for b in ("big", "small", "tiny") for c in ("fish", "bird")]
    await index.upsert([encoded(f"d{n}", [text]) for n, text in enumerate(texts)])
    await place.settle(index)
    query = hybrid(index, "red bird", 3)
    candidates = await index.search(query, None)
    assert query.dense is not None
    assert query.sparse is not None
    assert len(set(candidates.chunk_ids)) == len(candidates.chunk_ids)
    weights = dict(zip(query.sparse.indices.tolist(), query.sparse.values.tolist(), strict=True))
    passages = await index.fetch(candidates.chunk_ids)
    assert [p.chunk_id for p in passages] == list(candidates.chunk_ids)
    for position, passage in enumerate(passages):
        stored = document_vector(term_counts(passage.text), index.statistics)
        products = zip(stored.indices.tolist(), stored.values.tolist(), strict=True)
        bm25 = sum(weights.get(term, 0.0) * value for term, value in products)
        assert candidates.dense_scores[position] == pytest.approx(word_vector(passage.text) @ query.dense, abs=1e-6)
        assert candidates.sparse_scores[position] == pytest.approx(bm25, rel=1e-5)
    assert sorted(r for r in candidates.dense_ranks if r >= 0) == [0, 1, 2]
    assert sorted(r for r in candidates.sparse_ranks if r >= 0) == [0, 1, 2]


async def test_search_of_one_branch_leaves_the_other_unscored(place: Place, index: Index) -> None:
    """A branch that was not asked has NaN scores and no ranks."""
    await index.upsert([encoded("a", ["one two"]), encoded("b", ["three four"])])
    await place.settle(index)
    both = hybrid(index, "one")
    dense = await index.search(replace(both, sparse=None), None)
    assert np.isnan(dense.sparse_scores).all()
    assert (dense.sparse_ranks == -1).all()
    assert len(dense.chunk_ids) == 2
    sparse = await index.search(replace(both, dense=None), None)
    assert np.isnan(sparse.dense_scores).all()
    assert (sparse.dense_ranks == -1).all()
    assert [p.document_id for p in await index.fetch(sparse.chunk_ids)] == ["a"]


async def test_search_fills_its_limit_past_deleted_chunks(place: Place, index: Index) -> None:
    """Deleted chunks do not take places in the ranking, however many of them were the best."""
    await index.upsert([encoded(f"d{n:03}", [f"alpha {'beta ' * (n % 7)}x{n}"]) for n in range(60)])
    await place.settle(index)
    best = await found_documents(index, hybrid(index, "alpha beta", 40))
    await index.delete(sorted(best))
    left = await index.search(hybrid(index, "alpha beta", 10), None)
    assert (left.dense_ranks >= 0).sum() == min(10, 60 - len(best))
    assert not {p.document_id for p in await index.fetch(left.chunk_ids)} & best


async def test_statistics_stay_frozen_with_the_generation(place: Place, index: Index) -> None:
    """After a build, writes do not change the statistics; the next build counts exactly what is there."""
    if not place.builds:
        pytest.skip("about generations")
    await index.upsert([encoded("a", ["alpha beta"]), encoded("b", ["alpha"])])
    epoch = await index.build()
    frozen = index.statistics
    await index.upsert([encoded(f"c{n}", ["alpha gamma delta"]) for n in range(20)])
    assert index.statistics is frozen
    assert frozen.document_count == 2
    await index.delete(["a"])
    assert (await index.build()).generation == epoch.generation + 1
    assert index.statistics.document_count == 21
    assert index.statistics.average_length == pytest.approx((1 + 20 * 3) / 21)


async def test_few_changes_need_no_new_generation(place: Place, index: Index) -> None:
    """At the end of a job a generation is built when there is none yet, or much has changed since."""
    if not place.builds:
        pytest.skip("about generations")
    await index.upsert([encoded(f"a{n}", ["alpha beta"]) for n in range(100)])
    await index.build_if_stale()
    assert index.statistics.document_count == 100
    built = index.epoch.generation
    await index.upsert([encoded("b", ["alpha gamma"])])
    await index.build_if_stale()
    assert index.epoch.generation == built
    assert "b" in await found_documents(index, hybrid(index, "gamma", 10))
    await index.upsert([encoded(f"c{n}", ["alpha delta"]) for n in range(120)])
    await index.build_if_stale()
    assert index.epoch.generation > built
    assert index.statistics.document_count == 221


async def test_get_document_returns_what_was_written(index: Index) -> None:
    """The canonical text, format, source and metadata come back as they were."""
    document = replace(
        encoded("a", ["zeile mit ümlaut", "zwei 🎈"], {"year": 2020}).document, source_uri="file:///a.md"
    )
    await index.upsert([replace(encoded("a", ["zeile mit ümlaut", "zwei 🎈"]), document=document)])
    assert await index.get_document("a") == document
    assert await index.get_document("b") is None


async def test_list_documents_pages_by_id(index: Index) -> None:
    """Pages follow each other without gaps, in the order of the ids, and only real tokens are taken."""
    names = [f"d{n:02}" for n in range(7)] + ["é", "z"]
    await index.upsert([encoded(name, ["text", "more"], {"lang": "de"}) for name in reversed(names)])
    seen: list[DocumentSummary] = []
    token = ""
    while True:
        page = await index.list_documents(4, token)
        seen += page.documents
        token = page.next_page_token
        if not token:
            break
    assert [one.document_id for one in seen] == sorted(names)
    assert (seen[0].chunk_count, seen[0].text_length, seen[0].metadata) == (2, 9, {"lang": "de"})
    assert seen[0].title == "Title of d00"
    for wrong in ("nonsense", "AAAA", "€"):
        with pytest.raises(InvalidPageToken):
            await index.list_documents(4, wrong)


async def test_count_counts_what_passes(place: Place, index: Index) -> None:
    """Counting with a filter counts documents and chunks; an empty filter is an error, no filter is all."""
    await index.upsert([encoded(f"d{n}", ["a", "b"][: 1 + n % 2], {"year": n}) for n in range(5)])
    await place.settle(index)
    assert await index.count(Filter(should=(MatchAny("year", (1, 2)), MatchAny("year", (9,))))) == Counts(2, 3)
    assert await index.count(Filter(must=(MatchAny("year", (77,)),))) == Counts(0, 0)
    assert await index.count(None) == Counts(5, 7)
    with pytest.raises(FilterEmpty):
        await index.count(Filter())
