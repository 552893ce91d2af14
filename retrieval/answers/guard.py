"""Whether an answer to one question may be an answer to another: a guard over facts, not over words.

Look-alikes are made by exchanging one thing in an otherwise equal question, and no embedding tells them apart. So
names, numbers, units, dates, versions, identifiers, negations and directions must agree always, in the same places;
everyday words may differ only where the questions are worded differently altogether, and never in a single slot. What
passes is not yet an equal question: the risk model weighs the figures of the comparison.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from retrieval.answers.facts.reading import read_facts
from retrieval.answers.facts.types import Facts
from retrieval.answers.refusals import Difference, refusal

__all__ = ["Comparison", "Facts", "compare", "read_facts"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two questions compare. Shares are of distinct content words, in [0, 1]."""

    refused: str  # why the answer of one must not serve the other; empty when it may
    jaccard: float  # in common, of all
    asked_contained: float  # share of the asked question's words that the stored one has
    stored_contained: float
    asked_unmatched: int  # content words that the other question lacks
    stored_unmatched: int
    equal_content: bool
    order_agreement: float  # share of neighbouring shared words that stand in the same order in both


def compare(asked: Facts, stored: Facts) -> Comparison:
    """Compares two questions. `refused` does not depend on which of them was stored.

    It is empty, or one of "negation", "number", "unit", "date", "version", "identifier", "direction", "name", "symbol",
    "question_kind", "arguments" and "substitution".
    """
    asked_count, stored_count = Counter(w.key for w in asked.words), Counter(w.key for w in stored.words)
    difference = Difference(asked_count - stored_count, stored_count - asked_count)
    shared = len(asked.keys & stored.keys)
    return Comparison(
        refused=refusal(asked, stored, difference),
        jaccard=_share(shared, len(asked.keys | stored.keys)),
        asked_contained=_share(shared, len(asked.keys)),
        stored_contained=_share(shared, len(stored.keys)),
        asked_unmatched=difference.extra.total(),
        stored_unmatched=difference.missing.total(),
        equal_content=asked.keys == stored.keys,
        order_agreement=_order_agreement(asked, stored),
    )


def _order_agreement(asked: Facts, stored: Facts) -> float:
    places = {word.key: place for place, word in enumerate(stored.words)}
    order = [places[word.key] for word in asked.words if word.key in places]
    neighbours = list(pairwise(order))
    return _share(sum(first <= second for first, second in neighbours), len(neighbours))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
