"""Reading and writing filters are inverse."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import example, given, settings
from hypothesis import strategies as st

from indexers.errors import FilterEmpty, FilterSyntax, FilterTooDeep
from indexers.filter_format import format_filter
from indexers.filter_text import parse_filter
from indexers.filters import Condition, Exists, Filter, MatchAny, Range
from indexers.matching import matches
from indexers.types import FieldType, Metadata, Scalar

FIELDS = {
    "word": FieldType.KEYWORD,
    "not": FieldType.KEYWORD,
    "count": FieldType.INTEGER,
    "size-x": FieldType.FLOAT,
    "on": FieldType.BOOL,
}
VALUES: dict[FieldType, st.SearchStrategy[Scalar]] = {
    FieldType.KEYWORD: st.text(max_size=4),
    FieldType.INTEGER: st.integers(-3, 3),
    FieldType.FLOAT: st.floats(allow_nan=False, allow_infinity=False),
    FieldType.BOOL: st.booleans(),
}
RANGED = ["count", "size-x"]


@st.composite
def _leaves(draw: st.DrawFn) -> Condition:
    field = draw(st.sampled_from(sorted(FIELDS)))
    values = VALUES[FIELDS[field]]
    kind = draw(st.integers(0, 2))
    if kind == 0:
        return Exists(field)
    if kind == 1 and field in RANGED:
        bounds = draw(st.lists(st.sampled_from(["gt", "gte", "lt", "lte"]), min_size=1, unique=True))
        return Range(field, **{bound: draw(values) for bound in bounds})
    return MatchAny(field, tuple(draw(st.lists(values, max_size=3))))


def _filters(conditions: st.SearchStrategy[Condition]) -> st.SearchStrategy[Filter]:
    parts = st.lists(conditions, max_size=3).map(tuple)
    return st.builds(Filter, parts, parts, parts).filter(lambda made: bool(made.must or made.should or made.must_not))


FILTERS = _filters(st.recursive(_leaves(), _filters, max_leaves=8))
METADATA: st.SearchStrategy[Metadata] = st.fixed_dictionaries(
    {}, optional={name: st.lists(VALUES[kind], min_size=1, max_size=2).map(tuple) for name, kind in FIELDS.items()}
)


@settings(max_examples=120, deadline=None)
@example(filter=Filter(must_not=(Range("count", gt=0, lt=0),)), metadata={"count": (1, -1)})
@given(filter=FILTERS, metadata=METADATA)
def test_a_written_filter_means_the_same_when_it_is_read(filter: Filter, metadata: Metadata) -> None:
    """It passes the same documents, and from then on text and filter stay as they are."""
    text = format_filter(filter)
    again = parse_filter(text)
    assert matches(again, metadata, FIELDS) == matches(filter, metadata, FIELDS)
    assert format_filter(again) == format_filter(parse_filter(format_filter(again)))
    assert parse_filter(format_filter(again)) == again


@settings(max_examples=300, deadline=None)
@given(text=st.text(alphabet="ab=!<>() ,\"'\\`1.-NOTANDRIEXS", max_size=40))
def test_any_text_is_a_filter_or_a_named_mistake(text: str) -> None:
    """The parser ends with a filter or one of its own errors."""
    found: Filter | None = None
    with suppress(FilterSyntax, FilterEmpty, FilterTooDeep):
        found = parse_filter(text)
    assert found is None or parse_filter(format_filter(found)) == found
