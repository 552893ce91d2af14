"""What goes onto the wire comes back as it was."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from indexers.filters import Condition, Exists, Filter, MatchAny, Range
from retrieval.server.convert.filters import filter_from_pb, filter_to_pb
from retrieval.server.convert.metadata import metadata_from_pb, metadata_to_pb

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
times = st.datetimes(datetime(1, 1, 1), datetime(9999, 12, 31), timezones=st.just(UTC))  # noqa: DTZ001 - zones are added
integers = st.integers(-(2**63), 2**63 - 1)
floats = st.floats(allow_nan=False, allow_infinity=False)
scalars = st.one_of(texts, integers, floats, st.booleans(), times)
metadata = st.dictionaries(texts, st.one_of(scalars, st.lists(scalars, max_size=4).map(tuple)), max_size=6)


@st.composite
def _ranges(draw: st.DrawFn) -> Range:
    bound: st.SearchStrategy[Any] = st.none() | draw(st.sampled_from([floats, times]))
    return Range(draw(texts), gt=draw(bound), gte=draw(bound), lt=draw(bound), lte=draw(bound))


def _filters(conditions: st.SearchStrategy[Condition]) -> st.SearchStrategy[Filter]:
    several = st.lists(conditions, max_size=3).map(tuple)
    return st.builds(Filter, several, several, several)


leaves: st.SearchStrategy[Condition] = st.one_of(
    st.builds(MatchAny, texts, st.lists(scalars, max_size=3).map(tuple)), _ranges(), st.builds(Exists, texts)
)


def _typed(value: object) -> object:
    """True equals 1 in Python, not on the wire."""
    return [_typed(part) for part in value] if isinstance(value, tuple) else (type(value), value)


@given(metadata)
def test_metadata_round_trips(values: dict[str, object]) -> None:
    """Every value keeps its kind and its exact value, times to the microsecond."""
    back = metadata_from_pb(metadata_to_pb(values), "metadata")  # type: ignore[arg-type]
    assert {name: _typed(value) for name, value in back.items()} == {n: _typed(v) for n, v in values.items()}


@given(_filters(st.recursive(leaves, _filters, max_leaves=8)))
def test_filter_round_trips(filter: Filter) -> None:
    """A filter keeps its shape and its bounds."""
    assert filter_from_pb(filter_to_pb(filter)) == filter
