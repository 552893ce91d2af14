"""A quoted sentence never hides or fakes the citation mark that follows it."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st

from indexers.types import Passage
from retrieval.citations import CitationParser
from retrieval.generation.reading import sentence_text
from retrieval.types import Citation

ALPHABET = [
    "word",
    "name",
    " ",
    " ",
    "\n",
    "`",
    "``",
    "[",
    "]",
    "[3]",
    "[1, 2]",
    "x[0]",
    "1",
    ",",
    ".",
    "*",
    "_",
    "#",
    "(",
]
KNOWN = [Citation(1, Passage("c1", "d1", "", (), "x", 0, 1, 0, 0, {}), ("c1",))]


@settings(max_examples=500, deadline=None)
@example(["word name ", "[", "[3]", "1", "]", " word"])
@given(st.lists(st.sampled_from(ALPHABET), max_size=25))
def test_each_sentence_carries_exactly_its_own_mark(pieces: list[str]) -> None:
    """Whatever stands in a source, the parser finds the one mark that was put behind its sentence."""
    text = sentence_text("".join(pieces))
    parser = CitationParser(KNOWN)
    emitted = parser.feed(f"{text} [1]")
    rest, citations, unknown = parser.finish()
    assert (emitted + rest, len(citations), unknown) == (f"{text} [1]", 1, 0)
    assert "\n" not in text
