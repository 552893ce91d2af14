"""The position scanner finds the same keys as tomllib, each in the line where it stands."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from indexers.jobs.toml_lines import Path, lines_of

KEYS = st.sampled_from(["a", "b", "c-d", "7", '"q.x"', "'l # i'", '"e\\"s"'])
STRINGS = st.sampled_from([
    '"plain"', '"a # no comment"', '"esc \\" = ]"', "'lit \\'", '""', "''",
    '"""\nmany\n"" \\""" = lines\n"""', '"""two ends"""""', "'''\nlit = [\n'''", "'''x''''",
])  # fmt: skip
SCALARS = st.one_of(
    STRINGS,
    st.sampled_from(["1", "-0.5e3", "true", "1979-05-27T07:32:00Z", "1979-05-27 07:32:00", "0xf"]),
)
GAPS = st.sampled_from([" ", "\n", "\n  # comment ] } =\n", " \t"])


@st.composite
def arrays(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    """Draws an array, over several lines."""
    values = draw(st.lists(inner, max_size=3))
    gap = draw(GAPS)
    trailing = draw(st.sampled_from(["", ","])) if values else ""
    return f"[{gap}{f',{gap}'.join(values)}{trailing}{gap}]"


@st.composite
def inline_tables(draw: st.DrawFn, inner: st.SearchStrategy[str]) -> str:
    """Draws an inline table."""
    names = draw(st.lists(KEYS, max_size=3, unique=True))
    return "{ " + ", ".join(f"{name} = {draw(inner)}" for name in names) + " }"


VALUES = st.recursive(SCALARS, lambda inner: arrays(inner) | inline_tables(inner), max_leaves=6)


@st.composite
def statements(draw: st.DrawFn) -> str:
    """Draws a key with its value, a table's or an array's header, a comment or nothing."""
    keys = draw(st.sampled_from([".", " . "])).join(draw(st.lists(KEYS, min_size=1, max_size=3)))
    kind = draw(st.integers(0, 9))
    if kind == 0:
        return "# [comment]"
    if kind <= 2:
        return f"[ {keys} ] # note"
    if kind == 3:
        return f"[[{keys}]]"
    return f"{keys} = {draw(VALUES)}"


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Draws a text that tomllib reads, by leaving out each statement that would break it."""
    text = ""
    for statement in draw(st.lists(statements(), max_size=12)):
        longer = text + statement + draw(st.sampled_from(["\n", "\r\n", "\n\n"]))
        try:
            tomllib.loads(longer)
        except tomllib.TOMLDecodeError:
            continue
        text = longer
    return text


def _paths(tree: Any, path: Path = ()) -> Iterator[Path]:
    if isinstance(tree, dict):
        for name, value in tree.items():
            yield (*path, name)
            yield from _paths(value, (*path, name))
    elif isinstance(tree, list):
        for position, value in enumerate(tree):
            yield (*path, position)
            yield from _paths(value, (*path, position))


@given(documents())
def test_lines_of_finds_what_tomllib_reads(text: str) -> None:
    """Every key, table and element that tomllib reads has a line, and nothing else has."""
    assert set(lines_of(text)) == set(_paths(tomllib.loads(text)))


@given(documents())
def test_lines_of_names_the_line_of_the_key(text: str) -> None:
    """The key's own letters stand in the line that is named."""
    lines = text.replace("\r\n", "\n").split("\n")
    for path, line in lines_of(text).items():
        if isinstance(path[-1], str) and path[-1] != 'e"s':
            assert path[-1] in lines[line - 1]


def test_lines_of_counts_lines_from_one() -> None:
    """Keys after strings and arrays of many lines still have their own lines."""
    text = 'a = """\n\n"""\nb = [\n  1,\n  2,\n]\n[c]\nd.e = 1\n[[f]]\ng = 1\n[[f]]\ng = 2\n'
    assert dict(lines_of(text)) == {
        ("a",): 1, ("b",): 4, ("b", 0): 5, ("b", 1): 6, ("c",): 8, ("c", "d"): 9, ("c", "d", "e"): 9,
        ("f",): 10, ("f", 0): 10, ("f", 0, "g"): 11, ("f", 1): 12, ("f", 1, "g"): 13,
    }  # fmt: skip
