"""What every Index promises about late interaction, whatever it stores token codes in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from indexers.errors import InvalidVector
from indexers.index import Catalog, Index
from indexers.types import CollectionKey, EncodedDocument, FieldType, Passage
from tests.contract.index_places import Place
from tests.fakes.encoded import CODEC, encoded, hybrid, token_vectors

KEY = CollectionKey("tenant-a", "docs")
TEXTS = [f"{size} {color} {animal}" for size in ("big", "small") for color in ("red", "green") for animal in ("fish",)]


@pytest.fixture
async def index(catalog: Catalog) -> Index:
    """Is an empty collection that stores token codes."""
    return await catalog.create(KEY, {}, "")


def _query(text: str) -> NDArray[np.float32]:
    tokens = token_vectors(text)
    return tokens / np.float32(max(1, len(tokens)))


def _reference(query: NDArray[np.float32], text: str) -> float:
    """MaxSim over what is left of the token vectors in their codes, in plain arithmetic."""
    tokens = CODEC.decode(CODEC.encode(token_vectors(text)))
    return sum(max(float(np.dot(one, token)) for token in tokens) for one in query)


async def _passages(index: Index, text: str, limit: int = 100) -> list[Passage]:
    return await index.fetch((await index.search(hybrid(index, text, limit), None)).chunk_ids)


async def _settled(place: Place, index: Index, documents: Sequence[EncodedDocument]) -> None:
    """Writes half of the documents before the place settles, half after."""
    await index.upsert(documents[::2])
    await place.settle(index)
    await index.upsert(documents[1::2])


async def test_late_scores_are_those_of_the_decoded_codes(place: Place, index: Index) -> None:
    """Each passage has the MaxSim of its own codes, in the order asked for, whatever was asked beside it."""
    await _settled(place, index, [encoded(f"d{n}", [text, f"more {text}"]) for n, text in enumerate(TEXTS)])
    query = _query("small red bird")
    passages = await _passages(index, "red fish")
    expected = [_reference(query, passage.text) for passage in passages]
    assert len(passages) == 8
    scores = await index.late_scores(query, passages)
    assert scores.dtype == np.float32
    assert scores.tolist() == pytest.approx(expected, abs=1e-3)
    assert (await index.late_scores(query, passages[::-1])).tolist() == pytest.approx(expected[::-1], abs=1e-3)
    alone = [float((await index.late_scores(query, [one]))[0]) for one in passages]
    assert alone == pytest.approx(scores.tolist(), abs=1e-6)


async def test_late_scores_of_many_passages(place: Place, index: Index) -> None:
    """More passages than are scored at once are scored all the same."""
    await _settled(place, index, [encoded(f"d{n}", [f"alpha word{n} x{n % 7}"]) for n in range(150)])
    query, passages = _query("word3 x3"), await _passages(index, "alpha", 200)
    assert len(passages) == 150
    expected = [_reference(query, passage.text) for passage in passages]
    assert (await index.late_scores(query, passages)).tolist() == pytest.approx(expected, abs=1e-3)


async def test_late_scores_without_passages_or_tokens(place: Place, index: Index) -> None:
    """No passages have no scores, and a query of no tokens scores 0 everywhere."""
    await _settled(place, index, [encoded("a", ["red fish"]), encoded("b", ["green fish"])])
    nothing = await index.late_scores(_query("red"), [])
    assert (nothing.dtype, nothing.shape) == (np.float32, (0,))
    assert (await index.late_scores(_query(""), await _passages(index, "fish"))).tolist() == [0, 0]


async def test_chunks_without_codes_have_no_late_score(place: Place, index: Index) -> None:
    """A chunk that came without codes, or whose tokens say nothing, is NaN and spoils no neighbour."""
    bare = encoded("bare", ["red fish"], codec=None)
    silent = encoded("silent", ["red fish too"])
    silent = replace(silent, chunks=(replace(silent.chunks[0], codes=CODEC.encode(token_vectors(""))),))
    await _settled(place, index, [bare, silent, encoded("a", ["one red fish"]), encoded("b", ["two red fish"])])
    query, passages = _query("red"), await _passages(index, "red fish")
    scores = dict(zip((one.document_id for one in passages), await index.late_scores(query, passages), strict=True))
    assert {name for name, score in scores.items() if np.isnan(score)} == {"bare", "silent"}
    assert scores["a"] == pytest.approx(_reference(query, "one red fish"), abs=1e-3)


async def test_collection_without_token_vectors_has_no_late_scores(place: Place, catalog: Catalog) -> None:
    """A collection can be made without them: its passages are NaN, and codes are refused instead of stored."""
    index = await catalog.create(CollectionKey("tenant-a", "plain"), {}, "", token_vectors=False)
    assert index.definition.code_bytes == 0
    await _settled(place, index, [encoded("a", ["red fish"], codec=None), encoded("b", ["fish"], codec=None)])
    passages = await _passages(index, "fish")
    assert len(passages) == 2
    assert np.isnan(await index.late_scores(_query("red"), passages)).all()
    with pytest.raises(InvalidVector, match="'c'"):
        await index.upsert([encoded("c", ["green fish"])])


async def test_deleted_and_replaced_passages_have_no_late_score(place: Place, index: Index) -> None:
    """From the reply on, codes of a deleted or replaced chunk are out of reach; the others stay where they were."""
    await _settled(place, index, [encoded(name, [f"{name} red fish"]) for name in "abcdef"])
    query, before = _query("red"), await _passages(index, "red fish")
    await index.delete(["a", "b"])
    await index.upsert([encoded("c", ["c green fish"]), encoded("d", ["d green fish"])])
    scores = dict(zip((one.document_id for one in before), await index.late_scores(query, before), strict=True))
    assert {name for name, score in scores.items() if np.isnan(score)} == {"a", "b", "c", "d"}
    now = await _passages(index, "fish")
    assert sorted(one.document_id for one in now) == ["c", "d", "e", "f"]
    expected = [_reference(query, one.text) for one in now]
    assert (await index.late_scores(query, now)).tolist() == pytest.approx(expected, abs=1e-3)


async def test_codes_of_another_tenant_are_out_of_reach(place: Place, catalog: Catalog, index: Index) -> None:
    """Passages of another collection are NaN, even where a chunk of this one has the same number (case TEN-03)."""
    other = await catalog.create(CollectionKey("tenant-b", "docs"), {}, "")
    for one, name in ((index, "secret"), (other, "own")):
        await _settled(place, one, [encoded(f"{name}{n}", [f"{name} red fish"]) for n in range(4)])
    secrets = await _passages(index, "red fish")
    assert len(secrets) == 4
    assert np.isnan(await other.late_scores(_query("red"), secrets)).all()


async def test_late_scores_refuse_queries_that_are_not_numbers(index: Index) -> None:
    """Token vectors of another dimension, or with NaN or Inf, are an error and not a score (case VEC-01)."""
    await index.upsert([encoded("a", ["red fish"])])
    passages, query = await _passages(index, "fish"), _query("red fish")
    wrong = (query[:, :-1], query[0], np.where(query > 0, np.nan, query), np.where(query > 0, np.inf, query))
    for bad in wrong:
        with pytest.raises(InvalidVector):
            await index.late_scores(bad, passages)


async def test_upsert_refuses_codes_of_another_width(index: Index) -> None:
    """Codes that the collection's codec did not make fail the call, naming the document; nothing is stored."""
    document = encoded("a", ["red fish"])
    codes = document.chunks[0].codes
    assert codes is not None
    for wrong in (codes[:, :-1], codes.ravel(), codes.astype(np.int16)):
        spoiled = replace(document, document=replace(document.document, document_id="bad"))
        spoiled = replace(spoiled, chunks=(replace(document.chunks[0], codes=wrong),))
        with pytest.raises(InvalidVector, match="'bad'"):
            await index.upsert([spoiled])
    assert (await index.count(None)).chunks == 0


async def test_token_codes_outlive_builds_schemas_and_reopening(place: Place, tmp_path: Path) -> None:
    """After another field was declared, a build and a reopening, each passage has the score that it had before."""
    query = _query("small fish")
    async with place.open(tmp_path / "again") as first:
        index = await first.create(KEY, {}, "")
        await _settled(place, index, [encoded(f"d{n}", [text]) for n, text in enumerate(TEXTS)])
        passages = await _passages(index, "fish")
        before = {p.chunk_id: s for p, s in zip(passages, await index.late_scores(query, passages), strict=True)}
        await first.update(KEY, {"lang": FieldType.KEYWORD}, None)
        await place.settle(index)
    async with place.open(tmp_path / "again") as second:
        index = await second.open(KEY)
        assert index.definition.code_bytes == CODEC.code_bytes
        passages = await _passages(index, "fish")
        after = {p.chunk_id: s for p, s in zip(passages, await index.late_scores(query, passages), strict=True)}
    assert len(before) == len(TEXTS)
    assert after == pytest.approx(before, abs=1e-6)
