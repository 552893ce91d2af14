"""Counts the tokens of texts that may be as long as a request allows, in time that a coroutine has.

A text is counted in pieces, whose counts are remembered; cutting adds a token at most. How many pieces are looked at is
bounded by what the count is for: a budget that is exceeded, or a size that need not be exact.
"""

from __future__ import annotations

from collections.abc import Iterator

from encoders.types import TokenCounter

LONGEST_TOKEN = 16
"""Code points of a token on average at most, in what is worth reading."""

_PIECE_CHARS = 4096  # as long as what counters remember
_MOST_PIECES = 8  # that are counted where no budget ends the counting
_SAMPLES = 8
_SAMPLE_CHARS = 1024


def pieces(text: str) -> Iterator[tuple[int, str]]:
    """Cuts a text; gives where each piece starts, and the piece."""
    for start in range(0, len(text), _PIECE_CHARS):
        yield start, text[start : start + _PIECE_CHARS]


def count_up_to(text: str, enough: int, counter: TokenCounter) -> int:
    """Counts the tokens of a text; stops once they are more than enough.

    A text of several pieces that would have to be of longer tokens than any is worth reading is not counted at all:
    that is more than enough.
    """
    if len(text) > max(_PIECE_CHARS, enough * LONGEST_TOKEN):
        return max(0, enough) + 1
    tokens = 0
    for _, piece in pieces(text):
        tokens += counter.count(piece)
        if tokens > enough:
            break
    return tokens


def estimated_count(text: str, counter: TokenCounter) -> int:
    """Counts the tokens of a text; of a long one some samples, and takes all of it to be as dense as the densest.

    Too few only for a text whose densest parts lie between the samples.
    """
    if len(text) <= _MOST_PIECES * _PIECE_CHARS:
        return sum(counter.count(piece) for _, piece in pieces(text))
    last = len(text) - _SAMPLE_CHARS
    starts = (last * sample // (_SAMPLES - 1) for sample in range(_SAMPLES))
    densest = max(counter.count(text[start : start + _SAMPLE_CHARS]) for start in starts)
    return -(-densest * len(text) // _SAMPLE_CHARS)
