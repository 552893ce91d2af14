"""Splits a block that is too large into overlapping spans: at lines, at sentences, and only then inside one.

Everything becomes a list of small units first, and one rule packs units; so a sentence of 3,000 ideographs and a table
row of 1,800 cells end in the same way as prose does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from indexers.chunking.blocks import Block, BlockKind
from indexers.chunking.spans import Span, trimmed
from indexers.chunking.token_positions import TokenPositions
from indexers.sentences import sentence_spans

_LINE = re.compile(r"[^\r\n]+")


def split_block(
    text: str, block: Block, positions: TokenPositions, target_tokens: int, overlap_tokens: int
) -> list[Span]:
    """Returns spans with strictly increasing starts that cost at most the target and hold all of the block's text.

    Neighbours share up to `overlap_tokens` of whole units, except in tables, whose rows stand by themselves.
    """
    overlap = 0 if block.kind is BlockKind.TABLE else min(overlap_tokens, target_tokens // 2)
    units = [
        piece
        for unit in _units(text, block)
        for start, end in _pieces(unit, positions, target_tokens, max(4, overlap // 2) if overlap else target_tokens)
        for piece in trimmed(text, start, end)
    ]
    return _pack(units, positions, target_tokens, overlap)


def _units(text: str, block: Block) -> list[Span]:
    if block.kind is BlockKind.PROSE:
        return [
            (block.start + start, block.start + end) for start, end in sentence_spans(text[block.start : block.end])
        ]
    lines = _LINE.finditer(text, block.start, block.end)
    return [(line.start(), line.start() + len(line[0].rstrip())) for line in lines if not line[0].isspace()]


def _pieces(unit: Span, positions: TokenPositions, target_tokens: int, piece_tokens: int) -> Iterator[Span]:
    """Yields the unit, or small pieces of it when it is above the target."""
    start, end = unit
    if positions.cost(start, end) <= target_tokens:
        yield unit
        return
    while start < end:
        cut = positions.cut(start, end, min(piece_tokens, target_tokens))
        yield start, cut
        start = cut


def _pack(units: list[Span], positions: TokenPositions, target_tokens: int, overlap_tokens: int) -> list[Span]:
    spans: list[Span] = []
    first = 0
    while first < len(units):
        after = first + 1
        while after < len(units) and positions.cost(units[first][0], units[after][1]) <= target_tokens:
            after += 1
        spans.append((units[first][0], units[after - 1][1]))
        first = (
            _step_back(units, positions, first, after, target_tokens, overlap_tokens) if after < len(units) else after
        )
    return spans


def _step_back(
    units: list[Span], positions: TokenPositions, first: int, after: int, target_tokens: int, overlap_tokens: int
) -> int:
    """Returns the unit that the next span starts with: repeated ones while they fit, but always room for a new one."""
    end = units[after - 1][1]
    start = after
    while start - 1 > first and positions.cost(units[start - 1][0], end) <= overlap_tokens:
        start -= 1
    while start < after and positions.cost(units[start][0], units[after][1]) > target_tokens:
        start += 1
    return start
