"""Spans of a text, in code points."""

from __future__ import annotations

from collections.abc import Iterator

Span = tuple[int, int]


def trimmed(text: str, start: int, end: int) -> Iterator[Span]:
    """Yields the span without the space around it; nothing when there is nothing else in it."""
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    if left < len(piece):
        yield start + left, start + len(piece.rstrip())
