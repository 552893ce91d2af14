"""Widens a passage to what stands around it in its document: some sentences on each side, or its whole section.

What is found is a chunk, small enough that its vector says one thing; what a model reads may be more. The widened
passage is an exact span of the document as well, never leaves the section that the chunk is in, and never passes a
bound of tokens: where a section is longer, its blocks are added in turns, those behind the chunk first.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest

from encoders.types import TokenCounter
from indexers.chunking.blocks import find_blocks
from indexers.sentences import sentence_spans
from indexers.types import Document, Passage
from retrieval.types import Expansion, Span

_LONGEST = 200_000  # code points of a document that is looked at; a longer one has no sections here
_AROUND = 4_000  # code points on each side in which sentences are looked for


@dataclass(frozen=True, slots=True)
class Outline:
    """A document with its blocks, found once for all of its passages."""

    document: Document
    blocks: tuple[tuple[int, int, tuple[str, ...]], ...]  # start, end, headings

    @classmethod
    def of(cls, document: Document) -> Outline:
        """Finds the blocks; a very long document counts as one."""
        text = document.text
        if len(text) > _LONGEST:
            return cls(document, ((0, len(text), ()),))
        found = find_blocks(text, document.format)
        return cls(document, tuple((block.start, block.end, block.heading_path) for block in found))

    def section(self, start: int, end: int) -> Span:
        """Returns the span of the blocks around a span that stand under the same headings."""
        inside = [at for at, (low, high, _) in enumerate(self.blocks) if low < end and start < high]
        if not inside:
            return start, end
        first, last = inside[0], inside[-1]
        while first > 0 and self.blocks[first - 1][2] == self.blocks[inside[0]][2]:
            first -= 1
        while last + 1 < len(self.blocks) and self.blocks[last + 1][2] == self.blocks[inside[-1]][2]:
            last += 1
        return self.blocks[first][0], self.blocks[last][1]


def expanded(passage: Passage, outline: Outline, expansion: Expansion, counter: TokenCounter) -> Passage:
    """Returns the passage with what is around it; as it is when the document no longer says the same there."""
    text, start, end = outline.document.text, passage.start, passage.end
    if not passage.text or text[start:end] != passage.text:
        return passage
    section = outline.section(start, end)
    if expansion.sentences:
        before, behind = _sentences(text, (start, end), section)
        steps = _in_turns((start, end), before[: expansion.sentences], behind[: expansion.sentences])
    else:
        inside = [(low, high) for low, high, _ in outline.blocks if section[0] <= low and high <= section[1]]
        before, behind = [low for low, _ in inside if low < start][::-1], [high for _, high in inside if high > end]
        steps = _in_turns((start, end), before, behind)
    start, end = _widest(text, (start, end), steps, expansion.limit_tokens, counter)
    if (start, end) == (passage.start, passage.end):
        return passage
    return replace(passage, text=text[start:end], start=start, end=end, token_count=0)


def _sentences(text: str, span: Span, section: Span) -> tuple[list[int], list[int]]:
    """Returns where the sentences before the span start, nearest first, and where those behind it end."""
    low, high = max(section[0], span[0] - _AROUND), min(section[1], span[1] + _AROUND)
    before = [low + at for at, _ in sentence_spans(text[low : span[0]])]
    return before[::-1], [span[1] + at for _, at in sentence_spans(text[span[1] : high])]


def _in_turns(span: Span, before: Sequence[int], behind: Sequence[int]) -> Iterator[Span]:
    """Yields wider and wider spans: one more behind, one more before, and so on."""
    start, end = span
    for earlier, later in zip_longest(before, behind):
        if later is not None:
            end = later
            yield start, end
        if earlier is not None:
            start = earlier
            yield start, end


def _widest(text: str, span: Span, steps: Iterator[Span], limit_tokens: int, counter: TokenCounter) -> Span:
    """Returns the widest of the spans that counts at most so many tokens, before one that counts more."""
    for start, end in steps:
        if counter.count(text[start:end]) > limit_tokens:
            break
        span = (start, end)
    return span
