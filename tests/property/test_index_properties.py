"""Whatever is done to them, the Edge-backed index and the exact oracle agree, and filters mean one thing."""

from __future__ import annotations

import asyncio
import tempfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from encoders.bm25 import collect_statistics, query_vector
from encoders.term_statistics import document_vector
from encoders.types import TermCounts
from indexers.catalog import EmbeddedCatalog
from indexers.columns import Columns
from indexers.filters import Condition, Exists, Filter, MatchAny, Range
from indexers.index import Index
from indexers.matching import matches
from indexers.models import OneModel
from indexers.options import IndexOptions, ShardKind
from indexers.postings import build_postings, count_statistics, join_postings
from indexers.schema import coerce_filter, coerce_metadata, metadata_from_json, metadata_to_json
from indexers.types import Candidates, CollectionKey, FieldType, Metadata
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded, hybrid

FIELDS = {
    "word": FieldType.KEYWORD,
    "year": FieldType.INTEGER,
    "price": FieldType.FLOAT,
    "flag": FieldType.BOOL,
    "day": FieldType.DATETIME,
    "text": FieldType.TEXT,
}
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "word": st.sampled_from(["a", "b", "true", ""]),
    "year": st.integers(-2, 3),
    "price": st.sampled_from([-1.5, -0.0, 0.0, 0.5, 1e300]),
    "flag": st.booleans(),
    "day": st.integers(0, 3).map(lambda n: datetime(2024, 1, 1, tzinfo=UTC) + timedelta(microseconds=n)),
    "text": st.sampled_from(["one", "one two", "TWO three", "!"]),
}
_FIELD = st.sampled_from(sorted(FIELDS))


def _metadata() -> st.SearchStrategy[Metadata]:
    some = {name: value | st.lists(value, max_size=2).map(tuple) for name, value in _VALUES.items()}
    return st.fixed_dictionaries({}, optional=some)


@st.composite
def _leaf(draw: st.DrawFn) -> Condition:
    name = draw(_FIELD)
    kind = draw(st.sampled_from(["match", "range", "exists"]))
    if kind == "range" and name in ("year", "price", "day"):
        bound = draw(st.sampled_from(["gt", "gte", "lt", "lte"]))
        return Range(name, **{bound: draw(_VALUES[name])})
    if kind == "match":
        asked = draw(st.lists(_VALUES[name], max_size=3))
        return MatchAny(name, tuple(one for one in asked if one != "!"))
    return Exists(name)


def _filters() -> st.SearchStrategy[Filter]:
    def combined(inner: st.SearchStrategy[Condition]) -> st.SearchStrategy[Condition]:
        group = st.lists(inner, max_size=2).map(tuple)
        return st.builds(Filter, group, group, group).filter(lambda one: bool(one.must or one.should or one.must_not))

    trees = st.recursive(_leaf(), combined, max_leaves=6)
    return trees.map(lambda one: one if isinstance(one, Filter) else Filter(must=(one,)))


@given(st.lists(_metadata(), max_size=6), _filters())
def test_columns_agree_with_matching(documents: list[Metadata], filter: Filter) -> None:
    """The mask over columns is what the pure function says of each document."""
    coerced = coerce_filter(filter, FIELDS)
    stored = [coerce_metadata(one, FIELDS) for one in documents]
    assert Columns(stored, FIELDS).mask(coerced).tolist() == [matches(coerced, one, FIELDS) for one in stored]


@given(_metadata())
def test_metadata_survives_the_record(metadata: Metadata) -> None:
    """Metadata comes back from JSON as it went in, types included, and coercing it again changes nothing."""
    coerced = coerce_metadata(metadata, FIELDS)
    back = metadata_from_json(metadata_to_json(coerced))
    assert back == coerced
    assert {name: type(value) for name, value in back.items()} == {name: type(v) for name, v in coerced.items()}
    assert coerce_metadata(back, FIELDS) == coerced


@given(_filters())
def test_coercing_a_filter_twice_changes_nothing(filter: Filter) -> None:
    """A coerced filter is its own coercion."""
    coerced = coerce_filter(filter, FIELDS)
    assert coerce_filter(coerced, FIELDS) == coerced


_TEXTS = st.lists(
    st.dictionaries(st.integers(0, 12), st.integers(1, 70_000), max_size=5).map(
        lambda counted: TermCounts(
            np.array(sorted(counted), dtype=np.uint32),
            np.array([min(counted[one], 65_535) for one in sorted(counted)], dtype=np.uint16),
            sum(counted.values()),
        )
    ),
    max_size=8,
)


@given(_TEXTS, _TEXTS, st.data())
def test_postings_score_as_the_vectors_do(
    first: list[TermCounts], second: list[TermCounts], data: st.DataObject
) -> None:
    """Joined postings give the dot products of the sparse vectors, to the bit, and count the same statistics."""
    kept = [np.array([data.draw(st.booleans()) for _ in part], dtype=np.bool_) for part in (first, second)]
    left = [
        text for part, keep in zip((first, second), kept, strict=True) for text, k in zip(part, keep, strict=True) if k
    ]
    statistics = collect_statistics(left)
    parts = [build_postings(part, statistics) for part in (first, second)]
    counted = count_statistics(parts, kept, statistics)
    assert (counted.document_count, counted.average_length) == (statistics.document_count, statistics.average_length)
    assert counted.terms.tolist() == statistics.terms.tolist()
    assert counted.document_frequencies.tolist() == statistics.document_frequencies.tolist()
    query = query_vector(TermCounts(np.arange(0, 9, 2, dtype=np.uint32), np.ones(5, dtype=np.uint16), 5), statistics)
    scores = join_postings(parts, kept, statistics).scores(query)
    weights = dict(zip(query.indices.tolist(), query.values.tolist(), strict=True))
    for text, score in zip(left, scores.tolist(), strict=True):
        vector = document_vector(text, statistics)
        products = (
            value * weights[term]
            for term, value in zip(vector.indices.tolist(), vector.values.tolist(), strict=True)
            if term in weights
        )
        assert score == sum(products)


_WORDS = ["alpha", "beta", "gamma", "delta"]
_OPERATION = st.one_of(
    st.tuples(
        st.just("upsert"),
        st.integers(0, 9),
        st.lists(st.lists(st.sampled_from(_WORDS), min_size=1, max_size=3).map(" ".join), max_size=3),
        st.fixed_dictionaries({}, optional={"year": st.integers(0, 2), "flag": st.booleans()}),
    ),
    st.tuples(st.just("delete"), st.integers(0, 9)),
    st.tuples(st.just("delete_where"), st.integers(0, 2)),
)


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(_OPERATION, min_size=3, max_size=12), st.lists(_OPERATION, max_size=6), _filters())
def test_edge_agrees_with_the_oracle(before: list[tuple], after: list[tuple], filter: Filter) -> None:  # type: ignore[type-arg]
    """After any writes, a build, more writes and a restart, both indexes find chunks of equal scores."""
    asyncio.run(_compare(before, after, coerce_filter(filter, FIELDS)))


async def _compare(before: list[tuple], after: list[tuple], filter: Filter) -> None:  # type: ignore[type-arg]
    key = CollectionKey("t", "c")
    with tempfile.TemporaryDirectory() as folder:
        found = {}
        for kind in ShardKind:
            options = IndexOptions(kind=kind, build_automatically=False)
            catalog = EmbeddedCatalog(Path(folder, kind.value), OneModel(MODEL), options)
            index = await catalog.create(key, FIELDS, "")
            await _apply(index, before)
            await index.build()
            await _apply(index, after)
            at_once = await _searches(index, filter)
            await catalog.close()
            catalog = EmbeddedCatalog(Path(folder, kind.value), OneModel(MODEL), options)
            index = await catalog.open(key)
            assert await _searches(index, filter) == at_once
            found[kind] = (at_once, await index.count(None), await index.count(filter))
            await catalog.close()
        assert found[ShardKind.EDGE] == found[ShardKind.EXACT]


async def _apply(index: Index, operations: list[tuple]) -> None:  # type: ignore[type-arg]
    for operation, which, *rest in operations:
        if operation == "upsert":
            await index.upsert([encoded(f"d{which}", rest[0], rest[1])])
        elif operation == "delete":
            await index.delete([f"d{which}"])
        else:
            await index.delete_where(Filter(must=(MatchAny("year", (which,)),)))


async def _searches(index: Index, filter: Filter) -> list[object]:
    found: list[object] = []
    for limit, asked in ((3, None), (50, None), (50, filter)):
        query = hybrid(index, "alpha gamma", limit)
        found += [
            _branches(await index.search(one, asked), limit)
            for one in (query, replace(query, sparse=None), replace(query, dense=None))
        ]
    return found


def _branches(candidates: Candidates, limit: int) -> object:
    """Scores in order of rank, a branch at a time; chunks too where ties cannot have been cut at the limit."""
    dense = sorted((r, s) for r, s in zip(candidates.dense_ranks, candidates.dense_scores, strict=True) if r >= 0)
    sparse = sorted((r, s) for r, s in zip(candidates.sparse_ranks, candidates.sparse_scores, strict=True) if r >= 0)
    whole = limit > 30
    return [
        [float(score) for _, score in dense],
        [float(score) for _, score in sparse],
        sorted(candidates.chunk_ids) if whole else None,
    ]
