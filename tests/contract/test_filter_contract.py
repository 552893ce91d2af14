"""What filters mean, the same for every Index: against the pure function, and for the cases that stores get wrong."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from indexers.errors import FilterEmpty, TypeMismatch, UnknownField
from indexers.filters import Exists, Filter, MatchAny, Range
from indexers.index import Catalog, Index
from indexers.matching import matches
from indexers.schema import coerce_filter
from indexers.types import CollectionKey, FieldType, Metadata, Scalar
from tests.contract.index_places import Place
from tests.fakes.encoded import encoded, found_documents, hybrid

FIELDS = {
    "lang": FieldType.KEYWORD,
    "year": FieldType.INTEGER,
    "price": FieldType.FLOAT,
    "public": FieldType.BOOL,
    "seen": FieldType.DATETIME,
    "title": FieldType.TEXT,
}
NOON = datetime(2024, 5, 1, 12, 0, 0, 123456, tzinfo=UTC)

DOCUMENTS: dict[str, Metadata] = {
    "none": {},
    "plain": {"lang": "en", "year": 2021, "price": 1.5, "public": True, "seen": NOON, "title": "Setting up Git hooks"},
    "text": {
        "lang": "en",
        "year": "2021",
        "price": "1.5",
        "public": "true",
        "seen": "2024-05-01T14:00:00.123456+02:00",
    },
    "float": {"lang": "de", "year": 2021.0, "price": 2, "public": False, "title": "GIT, in Straße 7"},
    "many": {"lang": ("de", "fr"), "year": (2019, 2023), "title": ("first git", "second hooks"), "price": (0.1, -3.0)},
    "empty": {"lang": (), "year": (), "title": "!!!"},
    "edge": {"year": -(2**53), "price": 1e300, "seen": datetime(1, 1, 1, tzinfo=UTC), "lang": "a.b[0] \x00 é"},
    "late": {"year": 2**53, "price": 1e-300, "seen": NOON + timedelta(microseconds=1), "lang": "true"},
    "old": {"year": 0, "price": -0.0, "seen": datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC), "lang": "EN"},
}

FILTERS = [
    Filter(must=(MatchAny("lang", ("en",)),)),
    Filter(must=(MatchAny("lang", ("de", "fr", "xx")),)),
    Filter(must=(MatchAny("lang", ("a.b[0] \x00 é",)),)),
    Filter(must=(MatchAny("lang", ("true",)),)),
    Filter(must=(MatchAny("lang", ()),)),
    Filter(must_not=(MatchAny("lang", ()),)),
    Filter(must=(MatchAny("year", (2021,)),)),
    Filter(must=(MatchAny("year", (2019, -(2**53), 2**53)),)),
    Filter(must=(Range("year", gte=2020),)),
    Filter(must=(Range("year", gt=2021, lt=2023),)),
    Filter(must=(Range("year", gt=2**53 - 1),)),
    Filter(must=(Range("year", gte=2019, lte=2021),), must_not=(MatchAny("lang", ("de",)),)),
    Filter(must=(MatchAny("price", (1.5, 2.0)),)),
    Filter(must=(MatchAny("price", (0,)),)),
    Filter(must=(Range("price", gt=0, lte=0.1),)),
    Filter(must=(Range("price", lt=0),)),
    Filter(must=(MatchAny("public", (True,)),)),
    Filter(must=(MatchAny("public", (False,)),)),
    Filter(must_not=(MatchAny("public", (True,)),)),
    Filter(must=(MatchAny("seen", (NOON,)),)),
    Filter(must=(Range("seen", gt=NOON),)),
    Filter(must=(Range("seen", gte=NOON, lte=NOON),)),
    Filter(must=(Range("seen", lt="2000-01-01"),)),
    Filter(must=(MatchAny("title", ("git",)),)),
    Filter(must=(MatchAny("title", ("HOOKS git",)),)),
    Filter(must=(MatchAny("title", ("strasse", "setting up")),)),
    Filter(must=(MatchAny("title", ("gi",)),)),
    *(Filter(must=(Exists(name),)) for name in FIELDS),
    *(Filter(must_not=(Exists(name),)) for name in FIELDS),
    Filter(should=(MatchAny("lang", ("fr",)), Range("year", lt=0))),
    Filter(should=(MatchAny("lang", ("en",)),), must=(Exists("title"),)),
    Filter(
        must=(Filter(should=(MatchAny("lang", ("en",)), MatchAny("lang", ("de",)))), Filter(must=(Exists("price"),)))
    ),
    Filter(must_not=(Filter(must=(MatchAny("lang", ("en",)), MatchAny("year", (2021,)))), Exists("seen"))),
    Filter(must=(MatchAny("lang", ("nowhere",)),)),
]


@pytest.fixture
async def index(catalog: Catalog) -> Index:
    """Holds all the documents."""
    opened = await catalog.create(CollectionKey("tenant-a", "docs"), FIELDS, "")
    await opened.upsert([encoded(name, ["same words"], metadata) for name, metadata in DOCUMENTS.items()])
    return opened


async def test_every_kind_of_filter_means_the_same_everywhere(place: Place, index: Index) -> None:
    """Each filter finds and counts exactly the documents that the pure function lets pass (case RET-02)."""
    await place.settle(index)
    stored: dict[str, Metadata] = {}
    for name in DOCUMENTS:
        document = await index.get_document(name)
        assert document is not None
        stored[name] = document.metadata
    query = hybrid(index, "same words", 20)
    for asked in FILTERS:
        coerced = coerce_filter(asked, FIELDS)
        expected = {name for name, metadata in stored.items() if matches(coerced, metadata, FIELDS)}
        assert await found_documents(index, query, coerced) == expected, asked
        assert (await index.count(coerced)).documents == len(expected), asked


async def test_filter_matches_numbers_however_they_were_written(place: Place, index: Index) -> None:
    """2021, "2021" and 2021.0 are one integer in an integer field (case VEC-09)."""
    await place.settle(index)
    asked = coerce_filter(Filter(must=(MatchAny("year", ("2021",)),)), FIELDS)
    assert await found_documents(index, hybrid(index, "same words"), asked) == {"plain", "text", "float"}


async def test_filter_of_a_truth_value_is_not_the_integer_one(place: Place, index: Index) -> None:
    """A truth value finds true and nothing that looks like it, and 1 cannot be stored as one (case VEC-11)."""
    with pytest.raises(TypeMismatch) as caught:
        await index.upsert([encoded("one", ["same words"], {"public": 1})])
    assert caught.value.field == "metadata.public"
    await place.settle(index)
    asked = coerce_filter(Filter(must=(MatchAny("public", (True,)),)), FIELDS)
    assert await found_documents(index, hybrid(index, "same words"), asked) == {"plain", "text"}


async def test_filter_holds_for_every_branch(place: Place, index: Index) -> None:
    """No branch and no fusion of them returns what the filter excludes (cases VEC-06 and RET-02)."""
    await index.upsert(
        [encoded("outside", ["zebra9 zebra9"], {"lang": "de"}), encoded("in", ["zebra9"], {"lang": "en"})]
    )
    await place.settle(index)
    both = hybrid(index, "zebra9")
    asked = Filter(must=(MatchAny("lang", ("en",)),))
    allowed = {"in", "plain", "text"}
    for query in (both, type(both)(both.dense, None, 10), type(both)(None, both.sparse, 10)):
        found = await found_documents(index, query, asked)
        assert "in" in found
        assert found <= allowed


async def test_absent_empty_and_unmatched_filters_are_three_things(index: Index) -> None:
    """No filter finds all, an unmatched one finds nothing, an empty one is an error."""
    query = hybrid(index, "same words", 20)
    assert await found_documents(index, query, None) == set(DOCUMENTS)
    assert await found_documents(index, query, Filter(must=(MatchAny("year", (1,)),))) == set()
    with pytest.raises(FilterEmpty):
        coerce_filter(Filter(), FIELDS)


async def test_filter_names_what_is_wrong_with_it(index: Index) -> None:
    """An undeclared field and a value of another type are errors that name the field, never an empty result."""
    with pytest.raises(UnknownField):
        await index.count(Filter(must=(MatchAny("colour", ("red",)),)))
    wrong: Scalar = "soon"
    with pytest.raises(TypeMismatch) as caught:
        await index.delete_where(Filter(must=(MatchAny("year", (wrong,)),)))
    assert caught.value.field == "filter.year"
    assert (await index.count(None)).documents == len(DOCUMENTS)
