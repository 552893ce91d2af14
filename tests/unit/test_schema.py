"""Coercion to the declared schema: what becomes what, and what is refused by which name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from indexers.errors import FilterEmpty, FilterTooDeep, InvalidDocument, InvalidInput, TypeMismatch
from indexers.filters import Exists, Filter, MatchAny, Range
from indexers.names import check_fields
from indexers.schema import coerce_filter, coerce_metadata
from indexers.types import FieldType, Scalar
from indexers.values import coerce_value, micros, words

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize(
    ("declared", "value", "expected"),
    [
        (FieldType.INTEGER, 2021, 2021),
        (FieldType.INTEGER, 2021.0, 2021),
        (FieldType.INTEGER, " 2021 ", 2021),
        (FieldType.INTEGER, "2021.0", 2021),
        (FieldType.INTEGER, "-7", -7),
        (FieldType.INTEGER, 2**53, 2**53),
        (FieldType.FLOAT, 2, 2.0),
        (FieldType.FLOAT, "1e3", 1000.0),
        (FieldType.FLOAT, ".5", 0.5),
        (FieldType.KEYWORD, "en", "en"),
        (FieldType.KEYWORD, 7, "7"),
        (FieldType.KEYWORD, 7.0, "7"),
        (FieldType.KEYWORD, 0.1, "0.1"),
        (FieldType.KEYWORD, True, "true"),
        (FieldType.BOOL, True, True),
        (FieldType.BOOL, "False", False),
        (FieldType.DATETIME, "2024-05-01", datetime(2024, 5, 1, tzinfo=UTC)),
        (FieldType.DATETIME, "2024-05-01T10:00:00+02:00", datetime(2024, 5, 1, 8, tzinfo=UTC)),
        (FieldType.DATETIME, "2024-05-01T10:00:00Z", datetime(2024, 5, 1, 10, tzinfo=UTC)),
        (FieldType.DATETIME, datetime(2024, 5, 1), datetime(2024, 5, 1, tzinfo=UTC)),  # noqa: DTZ001
        (FieldType.TEXT, "Some Text", "Some Text"),
    ],
)
def test_value_becomes_the_declared_type(declared: FieldType, value: Scalar, expected: Scalar) -> None:
    """What can become the declared type without loss does (case VEC-09)."""
    coerced = coerce_value(value, declared, "metadata.x")
    assert (type(coerced), coerced) == (type(expected), expected)


@pytest.mark.parametrize(
    ("declared", "value"),
    [
        (FieldType.INTEGER, True),
        (FieldType.INTEGER, 2021.5),
        (FieldType.INTEGER, "1_000"),
        (FieldType.INTEGER, "12a"),
        (FieldType.INTEGER, ""),
        (FieldType.INTEGER, 2**53 + 1),
        (FieldType.INTEGER, NAN),
        (FieldType.INTEGER, INF),
        (FieldType.INTEGER, "9" * 400),
        (FieldType.FLOAT, "nan"),
        (FieldType.FLOAT, NAN),
        (FieldType.FLOAT, "1e999"),
        (FieldType.FLOAT, 2**53 + 1),
        (FieldType.FLOAT, False),
        (FieldType.BOOL, 1),
        (FieldType.BOOL, "1"),
        (FieldType.BOOL, "yes"),
        (FieldType.KEYWORD, NAN),
        (FieldType.DATETIME, 1714557600),
        (FieldType.DATETIME, "yesterday"),
        (FieldType.DATETIME, datetime.min.replace(tzinfo=timezone(timedelta(hours=2)))),
    ],
)
def test_value_of_another_type_is_refused(declared: FieldType, value: Scalar) -> None:
    """What would lose something, or is only alike, is an error that names the field (case VEC-11)."""
    with pytest.raises(TypeMismatch) as caught:
        coerce_value(value, declared, "metadata.x")
    assert caught.value.field == "metadata.x"


def test_metadata_keeps_what_is_not_declared() -> None:
    """Undeclared keys are kept as they came, lists of values are coerced one by one."""
    stored = coerce_metadata({"year": ("2020", 2021.0), "note": 2021.0}, {"year": FieldType.INTEGER})
    assert stored == {"year": (2020, 2021), "note": 2021.0}


@pytest.mark.parametrize(
    "metadata",
    [
        {"": "x"},
        {"k" * 129: "x"},
        {f"k{n}": "x" for n in range(257)},
        {"k": tuple("x" for _ in range(1_001))},
        {"k": "x" * 70_000},
        {"k": "\ud800"},
        {"k": NAN},
        {"k": None},
        {"k": [1, 2]},
    ],
)
def test_metadata_out_of_bounds_is_refused(metadata: dict[str, Scalar]) -> None:
    """Metadata that is too large, or holds what is no value, is the caller's error."""
    with pytest.raises(InvalidInput) as caught:
        coerce_metadata(metadata, {})
    assert isinstance(caught.value, InvalidDocument | TypeMismatch)
    assert caught.value.field.startswith("metadata")


def test_filter_of_any_depth_is_bounded() -> None:
    """A filter nested 1,000 deep is refused, not a stack overflow; 16 levels are fine."""
    asked = Filter(must=(Exists("year"),))
    for _ in range(15):
        asked = Filter(must=(asked,))
    assert coerce_filter(asked, {"year": FieldType.INTEGER}) == asked
    for _ in range(985):
        asked = Filter(must_not=(asked,))
    with pytest.raises(FilterTooDeep):
        coerce_filter(asked, {"year": FieldType.INTEGER})


def test_filter_of_any_width_is_bounded() -> None:
    """Conditions and values are counted over the whole filter."""
    fields = {"year": FieldType.INTEGER}
    coerce_filter(Filter(must=(Exists("year"),) * 1_000), fields)
    with pytest.raises(FilterTooDeep):
        coerce_filter(Filter(must=(Exists("year"),) * 1_001), fields)
    with pytest.raises(FilterTooDeep):
        coerce_filter(Filter(must=(MatchAny("year", tuple(range(5_001))),) * 2), fields)


@pytest.mark.parametrize("name", ["lang", "public", "title"])
def test_range_needs_an_order(name: str) -> None:
    """Ranges are for numbers and dates."""
    fields = {"lang": FieldType.KEYWORD, "public": FieldType.BOOL, "title": FieldType.TEXT}
    with pytest.raises(TypeMismatch):
        coerce_filter(Filter(must=(Range(name, gt="a"),)), fields)


def test_range_needs_a_bound_and_text_needs_words() -> None:
    """A range without bounds and a text match without words are mistakes, not conditions."""
    fields = {"year": FieldType.INTEGER, "title": FieldType.TEXT}
    with pytest.raises(FilterEmpty):
        coerce_filter(Filter(must=(Range("year"),)), fields)
    with pytest.raises(TypeMismatch):
        coerce_filter(Filter(must=(MatchAny("title", ("!?",)),)), fields)


def test_fields_are_bounded() -> None:
    """A schema has at most 64 fields."""
    check_fields({f"f{n}": FieldType.KEYWORD for n in range(64)})
    with pytest.raises(InvalidInput):
        check_fields({f"f{n}": FieldType.KEYWORD for n in range(65)})


def test_words_are_runs_of_letters_and_digits() -> None:
    """Words ignore case and punctuation, in every script."""
    assert words("Größe: 7_b-C, Ω!") == ["grösse", "7", "b", "c", "ω"]


def test_micros_are_exact_at_the_ends_of_time() -> None:
    """Dates become integers without rounding."""
    assert micros(datetime(1970, 1, 1, tzinfo=UTC)) == 0
    last = datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC)
    assert micros(last) - micros(last - timedelta(microseconds=1)) == 1


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 123456789012345678901234567890])
def test_metadata_integers_fit_the_wire(value: int) -> None:
    """A number that no reply could carry is refused when it is indexed, declared or not."""
    with pytest.raises(TypeMismatch) as refused:
        coerce_metadata({"big": value}, {})
    assert refused.value.field == "metadata.big"
    assert coerce_metadata({"big": 2**63 - 1, "small": -(2**63)}, {}) == {"big": 2**63 - 1, "small": -(2**63)}
