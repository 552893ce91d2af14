"""An answer is parsed the same however its stream is cut."""

from __future__ import annotations

import re

from hypothesis import given, settings
from hypothesis import strategies as st

from indexers.types import Passage
from retrieval.citations import CitationParser
from retrieval.types import AnswerCitation, Citation

ALPHABET = ["[", "]", "1", "2", "9", ",", " ", ";", "`", "```", "\n", "a", "word", ".", "[1]", "[9]", "é", "漢"]
PIECES = st.lists(st.sampled_from(ALPHABET), max_size=40)
KNOWN = [
    Citation(number, Passage(f"c{number}", f"d{number}", "", (), "x", 0, 1, 0, 0, {}), (f"c{number}",))
    for number in (1, 2)
]


def parse(chunks: list[str]) -> tuple[str, tuple[AnswerCitation, ...], int]:
    """Feeds the chunks; no chunk may leave more than 33 characters held back."""
    parser = CitationParser(KNOWN)
    emitted = ""
    for chunk in chunks:
        emitted += parser.feed(chunk)
    rest, citations, unknown = parser.finish()
    assert len(rest) <= 33
    return emitted + rest, citations, unknown


@settings(max_examples=300, deadline=None)
@given(PIECES, st.data())
def test_any_split_gives_the_same_answer_and_citations(pieces: list[str], data: st.DataObject) -> None:
    """Where the stream is cut changes nothing."""
    text = "".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=8)))
    chunks = [text[start:end] for start, end in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    assert parse(chunks) == parse([text]) == parse(list(text))


@settings(max_examples=300, deadline=None)
@given(PIECES)
def test_offsets_point_at_marks_and_the_rest_is_untouched(pieces: list[str]) -> None:
    """Each citation points at a mark with its number; without unknown numbers the answer is the text."""
    text = "".join(pieces)
    answer, citations, unknown = parse([text])
    for citation in citations:
        assert str(citation.number) in re.findall(r"\d+", answer[citation.start : citation.end])
    if not unknown:
        assert answer == text


class ByCharacter(CitationParser):
    """The parser without its short cut: reads every character by itself."""

    def feed(self, text: str) -> str:
        """Returns what is settled."""
        pieces: list[str] = []
        for char in text:
            self._take(char, pieces)
        return "".join(pieces)


@settings(max_examples=300, deadline=None)
@given(st.lists(st.lists(st.sampled_from([*ALPHABET, "  ", "\r", "a b ", "```\nx\n```"]), max_size=12), max_size=6))
def test_whole_runs_are_read_as_their_characters(pieces: list[list[str]]) -> None:
    """What each chunk settles, and how it ends, is the same whether runs of plain text are taken at once or not."""
    whole, by_character = CitationParser(KNOWN), ByCharacter(KNOWN)
    for chunk in map("".join, pieces):
        assert whole.feed(chunk) == by_character.feed(chunk)
        assert whole.emitted_chars == by_character.emitted_chars
    assert whole.finish() == by_character.finish()
