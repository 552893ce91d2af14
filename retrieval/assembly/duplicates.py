"""Tells whether a passage says what another says already.

The measure is containment of word 5-grams (Broder 1997, "On the resemblance and containment of documents"): the share
of a passage's 5-grams that stand in the other one. It finds copies, versions and boilerplate, and not mere likeness.
"""

from __future__ import annotations

import re
from typing import TypeAlias

Gram: TypeAlias = tuple[str, ...]

_GRAM_WORDS = 5
# Scripts without spaces between words count character by character.
_UNSPACED = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff"
_BREAKS = {code: " " for code in range(128) if not (chr(code).isalnum() or chr(code) == "_")}
_WORD = re.compile(rf"[{_UNSPACED}]|[^\W{_UNSPACED}]+")


class KeptTexts:
    """Remembers the texts that were kept, to compare the next ones with."""

    def __init__(self, duplicate_overlap: float) -> None:
        self._overlap = duplicate_overlap
        self._kept: list[frozenset[Gram]] = []
        self._all: set[Gram] = set()

    def holds(self, grams: frozenset[Gram]) -> bool:
        """Tells whether at least `duplicate_overlap` of the grams stand in one of the kept texts."""
        if not grams or len(grams & self._all) / len(grams) < self._overlap:
            return False
        return any(len(grams & other) / len(grams) >= self._overlap for other in self._kept)

    def add(self, grams: frozenset[Gram]) -> None:
        """Remembers a text that was kept."""
        self._kept.append(grams)
        self._all |= grams


def word_grams(text: str) -> frozenset[Gram]:
    """Returns the distinct word 5-grams of a text; a shorter text is one gram, so that only its equal matches it."""
    words = _words(text) or text.split()
    if len(words) < _GRAM_WORDS:
        return frozenset([tuple(words)])
    return frozenset(zip(words, words[1:], words[2:], words[3:], words[4:], strict=False))


def _words(text: str) -> list[str]:
    """Splits into words, regardless of case; the way for ASCII gives the same and takes a third of the time."""
    if text.isascii():
        return text.lower().translate(_BREAKS).split()
    return _WORD.findall(text.casefold())
