"""A kept answer as a stream again, its citation marks numbered as the context of now numbers its sources."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby

from retrieval.answers.entry import Answer
from retrieval.types import AnswerCitation, Context

_PIECE_CHARS = 4096


@dataclass(frozen=True, slots=True)
class Replay:
    """The text to stream, and its citations."""

    text: str
    citations: tuple[AnswerCitation, ...]

    def pieces(self) -> Iterator[str]:
        """Yields the text in pieces of a bounded size."""
        for start in range(0, len(self.text), _PIECE_CHARS):
            yield self.text[start : start + _PIECE_CHARS]


def renumbered(answer: Answer, context: Context) -> Replay | None:
    """Returns the answer for this context; None when the context leaves out a source that the answer cites."""
    numbers = {}
    for source in answer.cited:
        number = _number_of(source.chunk_ids, context)
        if number is None:
            return None
        numbers[source.number] = number
    if all(old == new for old, new in numbers.items()):
        return Replay(answer.text, answer.marks)
    return _rewritten(answer, numbers)


def _number_of(chunk_ids: tuple[str, ...], context: Context) -> int | None:
    """Returns the number of the source that holds all these chunks."""
    return next((one.number for one in context.citations if set(chunk_ids) <= set(one.chunk_ids)), None)


def _rewritten(answer: Answer, numbers: dict[int, int]) -> Replay:
    text, citations, copied = "", [], 0
    for (start, end), marks in groupby(answer.marks, key=lambda mark: (mark.start, mark.end)):
        text += answer.text[copied:start]
        grouped = {numbers[mark.number]: mark for mark in marks}
        mark_text = f"[{', '.join(map(str, grouped))}]"
        place = (len(text), len(text) + len(mark_text))
        citations += [replace(mark, number=number, start=place[0], end=place[1]) for number, mark in grouped.items()]
        text, copied = text + mark_text, end
    return Replay(text + answer.text[copied:], tuple(citations))
