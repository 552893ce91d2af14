"""The text form of filters."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from indexers.errors import FilterEmpty, FilterSyntax, FilterTooDeep
from indexers.filter_format import format_filter
from indexers.filter_text import parse_filter
from indexers.filters import Exists, Filter, MatchAny, Range

A, B, C = MatchAny("a", (1,)), MatchAny("b", (2,)), MatchAny("c", (3,))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a = 1", Filter(must=(A,))),
        ("a = 1 AND b = 2 and c = 3", Filter(must=(A, B, C))),
        ("a = 1 OR b = 2 or c = 3", Filter(should=(A, B, C))),
        ("a = 1 OR b = 2 AND c = 3", Filter(should=(A, Filter(must=(B, C))))),
        ("(a = 1 OR b = 2) AND c = 3", Filter(must=(Filter(should=(A, B)), C))),
        ("NOT a = 1 AND b = 2", Filter(must=(B,), must_not=(A,))),
        ("NOT (a = 1 AND b = 2)", Filter(must_not=(Filter(must=(A, B)),))),
        ("NOT (a = 1 OR b = 2)", Filter(must_not=(A, B))),
        ("not not a = 1", Filter(must=(A,))),
        ("a != 1", Filter(must_not=(A,))),
        ("a IN (1, 'x', true)", Filter(must=(MatchAny("a", (1, "x", True)),))),
        ("a NOT IN (1)", Filter(must_not=(A,))),
        ("a IN ()", Filter(must=(MatchAny("a", ()),))),
        ("exists(a) AND NOT EXISTS b", Filter(must=(Exists("a"),), must_not=(Exists("b"),))),
        ("y >= 2020 AND y < 2023.5", Filter(must=(Range("y", gte=2020), Range("y", lt=2023.5)))),
        ("y (>= 2020 AND < 2023) OR y(>1)", Filter(should=(Range("y", gte=2020, lt=2023), Range("y", gt=1)))),
        ("y > -1 AND y <= 1e3", Filter(must=(Range("y", gt=-1), Range("y", lte=1000.0)))),
        ("d >= '2024-01-31T10:00:00Z'", Filter(must=(Range("d", gte="2024-01-31T10:00:00Z"),))),
        (r'a = "q\"\\\n\u00e9 \t"', Filter(must=(MatchAny("a", ('q"\\\né \t',)),))),
        (r"a = 'it\'s'", Filter(must=(MatchAny("a", ("it's",)),))),
        ("doc-type = FALSE", Filter(must=(MatchAny("doc-type", (False,)),))),
        ("`in` = 1 AND `ü x` = 1", Filter(must=(MatchAny("in", (1,)), MatchAny("ü x", (1,))))),
    ],
)
def test_text_becomes_a_filter(text: str, expected: Filter) -> None:
    """Operators, precedence, values and names as the language has them."""
    assert parse_filter(text) == expected


@pytest.mark.parametrize(
    ("text", "position", "expected"),
    [
        ("a = ", 5, "a value"),
        ("a = en", 5, "a value"),
        ("a", 2, "=, !="),
        ("a == 1", 4, "a value"),
        ("a = 1 b = 2", 7, "AND, OR or the end"),
        ("a = 1 AND", 10, "a field"),
        ("AND a = 1", 1, "a field"),
        ("(a = 1", 7, ")"),
        ("a = 1)", 6, "AND, OR or the end"),
        ("a IN 1", 6, "("),
        ("a IN (1,)", 9, "a value"),
        ("a NOT 1", 7, "IN"),
        ("a = 'x", 5, "a quoted value"),
        ("a = 1 & b = 2", 7, "an operator"),
        ("a = 1x", 5, "a quoted value"),
        ("a = 1e999", 5, "a value"),
        ("a = " + "9" * 500, 5, "a value"),
        (r"a = 'x\q'", 7, "an escape"),
        ("exists()", 8, "a field"),
        ("y (= 1)", 4, "<, <=, > or >="),
        ("y (> 1", 7, ")"),
        ("y (> 1 AND > 2)", 12, "each bound once"),
        ("true = 1", 1, "a field"),
    ],
)
def test_a_mistake_is_named_with_its_place(text: str, position: int, expected: str) -> None:
    """The error says at which character, from 1, what was expected."""
    with pytest.raises(FilterSyntax) as caught:
        parse_filter(text)
    assert f"character {position}:" in str(caught.value)
    assert expected in caught.value.bound
    assert caught.value.field == "filter"


def test_limits_of_the_language() -> None:
    """Nothing, too long a text and too deep a nesting are errors of their own."""
    with pytest.raises(FilterEmpty):
        parse_filter(" \n")
    with pytest.raises(FilterSyntax):
        parse_filter("a = '" + "x" * 100_000 + "'")
    for text in ("(" * 1000 + "a = 1" + ")" * 1000, "NOT " * 1000 + "a = 1"):
        with pytest.raises(FilterTooDeep):
            parse_filter(text)
    assert parse_filter("a = 1" + " AND a = 1" * 5000).must == (A,) * 5001


@pytest.mark.parametrize(
    ("filter", "expected"),
    [
        (Filter(must=(A,)), "a = 1"),
        (
            Filter(must=(A,), should=(B, C), must_not=(A, Exists("x"))),
            "a = 1 AND (b = 2 OR c = 3) AND a != 1 AND NOT EXISTS(x)",
        ),
        (Filter(should=(Filter(must=(A, B)), C)), "a = 1 AND b = 2 OR c = 3"),
        (Filter(must_not=(Filter(should=(Filter(must=(A, B)),)),)), "NOT (a = 1 AND b = 2)"),
        (Filter(must=(Range("y", gte=1, lt=2),), must_not=(Range("y", gt=5),)), "y (>= 1 AND < 2) AND NOT y > 5"),
        (Filter(must_not=(MatchAny("a", ("x", True)),)), 'a NOT IN ("x", true)'),
        (Filter(must=(MatchAny("not", (1.5,)),)), "`not` = 1.5"),
        (Filter(must=(Range("d", gt=datetime(2024, 1, 2, tzinfo=UTC)),)), 'd > "2024-01-02T00:00:00+00:00"'),
    ],
)
def test_a_filter_becomes_text(filter: Filter, expected: str) -> None:
    """Parentheses stand only where they are needed."""
    assert format_filter(filter) == expected


@pytest.mark.parametrize("filter", [Filter(), Filter(must=(Filter(),)), Filter(must=(Range("y"),))])
def test_a_filter_without_conditions_has_no_text(filter: Filter) -> None:
    """Absent and empty are different things, and empty is refused."""
    with pytest.raises(FilterEmpty):
        format_filter(filter)
