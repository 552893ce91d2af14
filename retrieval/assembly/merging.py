"""Joins chunks of one document that overlap or meet, so that the model reads running text once.

Chunks are joined by their offsets. Between two neighbours lies white space at most, since the chunker leaves out no
visible character; which kind is not stored, so line feeds of the same length stand for it. Else a merged passage is
exactly the document's text between its offsets. Where visible characters lie between two chunks, they stay apart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import reduce

from indexers.types import Passage

_BREAK = "\n\n"
_LONGEST_GAP = 64  # code points; a wider one is no mere paragraph break


@dataclass(frozen=True, slots=True)
class Source:
    """What becomes one citation: a passage, and the chunks it was made of in reading order."""

    passage: Passage
    members: tuple[Passage, ...]

    def touches(self, passage: Passage) -> bool:
        """Tells whether the passage overlaps, meets or directly follows or precedes the source."""
        if passage.document_id != self.passage.document_id:
            return False
        return touches(self.passage, passage) or any(neighbours(member, passage) for member in self.members)


class Sources:
    """Sources in order of their best member's rank, while passages are added best first."""

    def __init__(self) -> None:
        self.items: list[Source] = []

    def touching(self, passage: Passage) -> list[Source]:
        """Returns the sources that the passage would be joined with."""
        return [source for source in self.items if source.touches(passage)]

    def add(self, passage: Passage) -> None:
        """Joins the passage with the sources that it touches, or makes a new source of it."""
        joined = self.touching(passage)
        if not joined:
            self.items.append(Source(passage, (passage,)))
            return
        members = [member for source in joined for member in source.members] + [passage]
        members.sort(key=lambda member: (member.start, member.end))
        place = self.items.index(joined[0])
        merged = Source(reduce(join, members), tuple(members))
        self.items = [source for source in self.items if source not in joined]
        self.items.insert(place, merged)


def touches(first: Passage, second: Passage) -> bool:
    """Tells whether two passages of one document overlap or meet, and agree on the text that they share."""
    if first.document_id != second.document_id or not (_is_whole(first) and _is_whole(second)):
        return False
    low, high = _in_order(first, second)
    shared = min(low.end, high.end) - high.start
    return shared >= 0 and low.text.startswith(high.text[:shared], high.start - low.start)


def neighbours(first: Passage, second: Passage) -> bool:
    """Tells whether two passages are consecutive chunks of one document with little white space between them."""
    if first.document_id != second.document_id or abs(first.ordinal - second.ordinal) != 1:
        return False
    low, high = _in_order(first, second)
    return _is_whole(low) and _is_whole(high) and 0 <= high.start - low.end <= _LONGEST_GAP


def join(first: Passage, second: Passage) -> Passage:
    """Returns the text from the start of the one to the end of the other. They must touch or be neighbours."""
    low, high = _in_order(first, second)
    if high.end <= low.end:
        return low
    gap = max(0, high.start - low.end)
    text = low.text + _BREAK[:gap].ljust(gap) + high.text[max(0, low.end - high.start) :]
    path = _common(low.heading_path, high.heading_path)
    # Tokens add up over white space alone.
    counted = gap > 0 and low.token_count and high.token_count
    return replace(
        low,
        text=text,
        end=high.end,
        heading_path=path,
        token_count=low.token_count + high.token_count if counted else 0,
        header=low.header if path == low.heading_path else "",
    )


def uncovered_text(passage: Passage, sources: list[Source]) -> str:
    """Returns what the passage adds to the sources that it touches; the whole of it when it is wider on both sides."""
    start, end = passage.start, passage.end
    for source in sources:
        if source.passage.start <= passage.start:
            start = max(start, source.passage.end)
        elif source.passage.end >= passage.end:
            end = min(end, source.passage.start)
    return passage.text[start - passage.start : max(start, end) - passage.start]


def _is_whole(passage: Passage) -> bool:
    return 0 < len(passage.text) == passage.end - passage.start


def _in_order(first: Passage, second: Passage) -> tuple[Passage, Passage]:
    return (first, second) if (first.start, -first.end) <= (second.start, -second.end) else (second, first)


def _common(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    same = 0
    while same < min(len(first), len(second)) and first[same] == second[same]:
        same += 1
    return first[:same]
