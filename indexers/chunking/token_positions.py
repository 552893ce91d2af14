"""Where the tokens of a text start, found in one pass, so that any span is counted by arithmetic.

Long texts are tokenized in windows that end at white space: some tokenizers take quadratic time on long input, and the
offsets of one window are small.
"""

from __future__ import annotations

import unicodedata
from array import array
from bisect import bisect_left

from encoders.types import TokenCounter

_WINDOW = 16_384  # code points
CHARACTERS_PER_TOKEN = 16  # a span of so many code points costs a token even where the model sees fewer


class TokenPositions:
    """The starts of a text's tokens.

    A count over a span is what the whole text's tokens say; the span alone can have a few more where it cuts a word.
    """

    def __init__(self, text: str, counter: TokenCounter) -> None:
        self._text = text
        self._starts = array("l")
        start = 0
        while start < len(text):
            end = _window_end(text, start)
            self._starts.extend(start + token_start for token_start, _ in counter.offsets(text[start:end]))
            start = end

    def cost(self, start: int, end: int) -> int:
        """Returns the tokens that start within the span, or its length over `CHARACTERS_PER_TOKEN` when that is more.

        One unknown token can stand for any number of characters, so tokens alone do not bound a chunk.
        """
        tokens = bisect_left(self._starts, end) - bisect_left(self._starts, start)
        return max(tokens, (end - start) // CHARACTERS_PER_TOKEN)

    def cut(self, start: int, end: int, budget_tokens: int) -> int:
        """Returns the furthest good place to end a span that starts at `start` and costs at most the budget.

        After white space when there is some in the later half, else between two tokens, never before a combining mark
        if that can be helped; always past `start`.
        """
        token = bisect_left(self._starts, start) + budget_tokens
        furthest = self._starts[token] if token < len(self._starts) else end
        furthest = max(start + 1, min(furthest, end, start + budget_tokens * CHARACTERS_PER_TOKEN))
        return furthest if furthest == end else good_cut(self._text, (start + furthest) // 2, furthest)


def good_cut(text: str, low: int, high: int) -> int:
    """Returns the place in (low, high] to cut at: after the last white space, else before no combining mark."""
    for position in range(high, low, -1):
        if text[position - 1].isspace():
            return position
    for position in range(high, max(low, high - 32), -1):
        if position >= len(text) or not unicodedata.combining(text[position]):
            return position
    return high


def _window_end(text: str, start: int) -> int:
    end = start + _WINDOW
    return len(text) if end >= len(text) else good_cut(text, start, end)
