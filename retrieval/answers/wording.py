"""How two questions are worded: the same but for a slot, after one template, or differently throughout.

Words are compared in the order of `Phrases`. All steps are linear in the length of the questions.
"""

from __future__ import annotations

import enum
from collections import Counter

from retrieval.answers.facts.ordinary import FREE
from retrieval.answers.facts.types import Facts

_FEWEST_REWORDED = 2
_LONGEST_SLOT = 2
_LEAST_SHARED = 0.2


class Wording(enum.Enum):
    """How the words of two questions relate."""

    EQUAL = 1
    SLOT = 2  # one thing was exchanged, added or left out: how look-alikes are made
    REWORDED = 3  # a paraphrase, if it is about the same
    APART = 4  # next to nothing in common


def wording(asked: Facts, stored: Facts, extra: Counter[str], missing: Counter[str]) -> Wording:
    """Tells how two questions are worded; `extra` and `missing` are the words that only the one or the other has."""
    asked_other, stored_other = _weighty(extra), _weighty(missing)
    if not asked_other and not stored_other:
        return Wording.EQUAL
    if not asked_other or not stored_other or max(asked_other, stored_other) < _FEWEST_REWORDED:
        return Wording.SLOT
    first, second = ([word.key for word in facts.words if word.key not in FREE] for facts in (asked, stored))
    if _is_one_slot(first, second) or _is_template(first, second):
        return Wording.SLOT
    shared = len(asked.keys & stored.keys)
    return Wording.REWORDED if shared >= _LEAST_SHARED * len(asked.keys | stored.keys) else Wording.APART


def _weighty(words: Counter[str]) -> int:
    return sum(count for key, count in words.items() if key not in FREE)


def _is_one_slot(first: list[str], second: list[str]) -> bool:
    """Whether the questions differ in one short stretch of words only."""
    head = _common_start(first, second)
    tail = _common_start(first[head:][::-1], second[head:][::-1])
    return head + tail > 0 and max(len(first), len(second)) - head - tail <= _LONGEST_SLOT


def _common_start(first: list[str], second: list[str]) -> int:
    for place, (one, other) in enumerate(zip(first, second, strict=False)):
        if one != other:
            return place
    return min(len(first), len(second))


def _is_template(first: list[str], second: list[str]) -> bool:
    """Whether the questions are one template, filled in differently."""
    equal = sum(one == other for one, other in zip(first, second, strict=False))
    return len(first) == len(second) and 2 * equal >= len(first)
