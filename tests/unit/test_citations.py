"""Citation marks in a streamed answer: what is a mark, what is text, what is counted."""

from __future__ import annotations

import pytest

from indexers.types import Passage
from retrieval.citations import CitationParser
from retrieval.types import AnswerCitation, Citation


def citations(count: int) -> list[Citation]:
    """Numbers documents d1, d2 and so on."""
    return [
        Citation(number, Passage(f"c{number}", f"d{number}", "", (), "x", 0, 1, 0, 0, {}), (f"c{number}",))
        for number in range(1, count + 1)
    ]


def parse(*pieces: str, count: int = 3) -> tuple[str, list[tuple[int, str]], int]:
    """Returns the emitted answer, each citation's number with the text at its offsets, and the unknown numbers."""
    parser = CitationParser(citations(count))
    emitted = "".join(map(parser.feed, pieces))
    rest, found, unknown = parser.finish()
    answer = emitted + rest
    assert parser.emitted_chars == len(answer)
    assert all(citation.document_id == f"d{citation.number}" for citation in found)
    return answer, [(citation.number, answer[citation.start : citation.end]) for citation in found], unknown


@pytest.mark.parametrize(
    ("text", "marks"),
    [
        ("Turn the key [1].", [(1, "[1]")]),
        ("Turn the key [1][2].", [(1, "[1]"), (2, "[2]")]),
        ("Turn the key [1, 3]", [(1, "[1, 3]"), (3, "[1, 3]")]),
        ("Turn the key [ 2 ;3 ].", [(2, "[ 2 ;3 ]"), (3, "[ 2 ;3 ]")]),
        ("Zündung \U0001f511 [2].", [(2, "[2]")]),
        ("[[1]]", [(1, "[1]")]),
        ("[1][", [(1, "[1]")]),
    ],
)
def test_known_marks_stay_and_are_recorded(text: str, marks: list[tuple[int, str]]) -> None:
    """Marks of known sources stay in the answer; their offsets are code points of it."""
    assert parse(text) == (text, marks, 0)


@pytest.mark.parametrize(
    ("text", "answer", "unknown"),
    [
        ("Turn the key [9].", "Turn the key.", 1),
        ("Turn [9] the key", "Turn the key", 1),
        ("Turn [9]the key", "Turn the key", 1),
        ("Turn[9] the key", "Turn the key", 1),
        ("Turn [9][1].", "Turn [1].", 1),
        ("Turn [1, 9, 12].", "Turn [1].", 2),
        ("Turn [0] [9]", "Turn", 2),
        ("Turn [9] ", "Turn ", 1),
        ("Turn [9]\nthe key", "Turn\nthe key", 1),
    ],
)
def test_unknown_numbers_are_taken_out_and_counted(text: str, answer: str, unknown: int) -> None:
    """A number that stands for no source leaves the answer with the space before it."""
    emitted, _, count = parse(text)
    assert (emitted, count) == (answer, unknown)


@pytest.mark.parametrize(
    "text",
    [
        "a [note] b",
        "see [RFC 9110] and [1a]",
        "[]",
        "[ ]",
        "[,]",
        "[1-3]",
        "[1",
        "ends with [",
        "trailing space ",
        "two  spaces",
        "`names[1]` and ``a`[1]``",
        "```python\nnames[1]\n`x[2]`\n```\n",
        "  ````\n```\n[1]\n````",
        "[" + "1, " * 20 + "1]",
    ],
)
def test_other_brackets_pass_unchanged(text: str) -> None:
    """Words in brackets, open brackets, over-long lists and everything in code are text."""
    assert parse(text, count=3) == (text, [], 0)


def test_marks_after_code_count_again() -> None:
    """Code ends with its closing backticks; a lone backtick ends with its line."""
    assert parse("`a[0]` is first [1]")[1] == [(1, "[1]")]
    assert parse("a lone ` here\nand then [2]")[1] == [(2, "[2]")]
    assert parse("```\na[0]\n```\ndone [3]")[1] == [(3, "[3]")]


def test_only_what_may_become_a_mark_is_held_back() -> None:
    """GEN-12: text goes out at once; an open bracket waits, and so does the space before it, at most 32 characters."""
    parser = CitationParser(citations(1))
    assert parser.feed("Turn the key") == "Turn the key"
    assert parser.feed(" [") == ""
    assert parser.feed("1") == ""
    assert parser.feed("]") == " [1]"
    assert parser.feed(" [1, 1, 1, 1, 1, 1, 1, 1, 1, 1") == ""
    assert parser.feed(", 1").startswith(" [1, 1")


def test_open_mark_at_the_end_is_text() -> None:
    """GEN-12: an answer that ends inside a bracket ends with that bracket."""
    parser = CitationParser(citations(1))
    assert parser.feed("Turn [1] on [1") == "Turn [1] on"
    assert parser.finish() == (" [1", (AnswerCitation(1, 5, 8, "d1"),), 0)
