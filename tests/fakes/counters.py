"""Token counters without a model: one that is exact for any split, one whose parts weigh less than their whole."""

from __future__ import annotations

import re

from indexers.types import Passage
from retrieval.assembly.template import source_trail

_WORD = re.compile(r"\w+|[^\w\s]")


class WordCounter:
    """Counts words and visible signs; the tokens of a text are those of its parts, wherever it is cut at spaces."""

    name = "words"
    adds_up = True

    def __init__(self) -> None:
        self.counted_chars = 0

    def count(self, text: str) -> int:
        self.counted_chars += len(text)
        return len(_WORD.findall(text))

    def count_passage(self, passage: Passage) -> int:
        return self.count(passage.text)

    def count_trail(self, passage: Passage) -> int:
        return self.count(source_trail(passage))

    def offsets(self, text: str) -> list[tuple[int, int]]:
        return [match.span() for match in _WORD.finditer(text)]


class SurchargeCounter(WordCounter):
    """Adds a token for each citation mark after the first, as a tokenizer may that sees more in the whole."""

    name = "surcharge"
    adds_up = False

    def count(self, text: str) -> int:
        return super().count(text) + 3 * max(0, len(re.findall(r"^\[\d+\]", text, re.MULTILINE)) - 1)
