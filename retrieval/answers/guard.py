"""Whether an answer to one question may be an answer to another: a guard over facts, not over words.

Look-alikes are made by exchanging one thing in an otherwise equal question, and no embedding tells them apart. So names,
numbers, units, dates, versions, identifiers, negations and directions must agree always, in the same places; ordinary
words may differ only where the questions are worded differently altogether, and never in a single slot. What passes is
not yet an equal question: the risk model weighs the figures of the comparison.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

from retrieval.answers.facts import vocabulary as known
from retrieval.answers.facts.ordinary import FREE
from retrieval.answers.facts.reading import read_facts
from retrieval.answers.facts.types import ANYTHING, Facts, Kind, Word

__all__ = ["Comparison", "Facts", "compare", "read_facts"]

_FEWEST_REWORDED = 2
_LONGEST_SLOT = 2
_LEAST_SHARED = 0.2
_HOW_MODALS = frozenset({"can", "should", "need"})
_REASONS = (
    Kind.NUMBER, Kind.UNIT, Kind.DATE, Kind.VERSION, Kind.IDENTIFIER, Kind.TURN, Kind.NAME, Kind.SYMBOL, Kind.WORD,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Comparison:
    """How two questions compare. Shares are in [0, 1]."""

    refused: str  # why the answer of one must not serve the other; empty when it may
    jaccard: float  # content words in common, of all
    asked_contained: float  # share of the asked question's words that the stored one has
    stored_contained: float
    asked_unmatched: int  # content words that the other question lacks
    stored_unmatched: int
    equal_content: bool
    order_agreement: float  # share of neighbouring shared words that stand in the same order in both


def compare(asked: Facts, stored: Facts) -> Comparison:
    """Compares two questions. `refused` does not depend on which of them was stored."""
    asked_count, stored_count = Counter(w.key for w in asked.words), Counter(w.key for w in stored.words)
    extra, missing = asked_count - stored_count, stored_count - asked_count
    shared = asked.keys & stored.keys
    return Comparison(
        refused=_refusal(asked, stored, extra, missing),
        jaccard=_share(len(shared), len(asked.keys | stored.keys)),
        asked_contained=_share(len(shared), len(asked.keys)),
        stored_contained=_share(len(shared), len(stored.keys)),
        asked_unmatched=extra.total(),
        stored_unmatched=missing.total(),
        equal_content=asked.keys == stored.keys,
        order_agreement=_order_agreement(asked, stored),
    )


def _refusal(asked: Facts, stored: Facts, extra: Counter[str], missing: Counter[str]) -> str:
    return (
        _of_negation(asked, stored, extra, missing)
        or _of_anchors(asked, stored, extra, missing)
        or _of_kind(asked, stored)
        or _of_direction(asked, stored)
        or _of_arguments(asked, stored)
        or _of_wording(asked, stored, extra, missing)
    )


def _of_negation(asked: Facts, stored: Facts, extra: Counter[str], missing: Counter[str]) -> str:
    if asked.negations != stored.negations and not _deny_alike(asked.negations, stored.negations):
        return "negation"
    return "negation" if _denied(extra, missing) or _denied(missing, extra) else ""


def _denied(words: Counter[str], others: Counter[str]) -> bool:
    """Whether a word of the one stands in the other with a prefix that turns it: `lock` and `unlock`."""
    plain = {word.removeprefix("!") for word in others}
    return any(prefix + word.removeprefix("!") in plain for word in words for prefix in known.NEGATIVE_PREFIXES)


def _deny_alike(asked: tuple[str, ...], stored: tuple[str, ...]) -> bool:
    """Whether the single negation of each is the same, where one does not tell what it denies."""
    if len(asked) != 1 or len(stored) != 1:
        return False
    (first, _, denied), (second, _, other) = asked[0].partition(":"), stored[0].partition(":")
    return first == second and ANYTHING in (denied, other)


def _of_anchors(asked: Facts, stored: Facts, extra: Counter[str], missing: Counter[str]) -> str:
    """Names, figures and words that turn the meaning, or that we do not know, must stand in both."""
    kinds = {w.kind for w in asked.words if w.key in extra and not w.ordinary}
    kinds |= {w.kind for w in stored.words if w.key in missing and not w.ordinary}
    return next((kind.value for kind in _REASONS if kind in kinds), "")


def _of_kind(asked: Facts, stored: Facts) -> str:
    if asked.kinds != stored.kinds:
        return "question_kind"
    if len(asked.persons | stored.persons) > 1 and asked.persons and stored.persons and asked.persons != stored.persons:
        return "name" if not asked.kinds[0].startswith("how") else ""
    return "" if _manner(asked) == _manner(stored) else "question_kind"


def _manner(facts: Facts) -> tuple[str, ...]:
    if facts.kinds[0].startswith("how"):
        return tuple(m for m in facts.manner if m not in _HOW_MODALS)
    return facts.manner if facts.kinds[0] == "polar" else tuple(m for m in facts.manner if m != "can")


def _of_direction(asked: Facts, stored: Facts) -> str:
    return "" if asked.strict == stored.strict else "direction"


def _of_arguments(asked: Facts, stored: Facts) -> str:
    """What stands in both must stand in the same places, whichever way the phrases are put."""
    fixed = {word.key for facts in (asked, stored) for word in facts.words if not word.ordinary}
    first, second = ([word for word in facts.words if word.key in fixed] for facts in (asked, stored))
    if _phrases(first) == _phrases(second):
        return "" if asked.passive == stored.passive or len(first) < 2 else "arguments"
    if [w.key for w in first] != [w.key for w in second]:
        return "arguments"
    for one, other in zip(first, second, strict=True):
        strong = {one.role, other.role} & _STRONG_ROLES
        if one.role != other.role and strong:
            return "direction"
    return "" if asked.passive == stored.passive or len(first) < 2 else "arguments"


_STRONG_ROLES = frozenset(known.STRONG_PREPOSITIONS.values())


def _phrases(words: list[Word]) -> list[tuple[str, list[str]]]:
    """The words by phrase, in no order of phrases; subject, verb and object are one, for their order counts."""
    phrases: dict[tuple[str, int], list[str]] = {}
    for word in words:
        phrases.setdefault((word.role, word.phrase if word.role else 0), []).append(word.key)
    return sorted((role, keys) for (role, _), keys in phrases.items())


def _of_wording(asked: Facts, stored: Facts, extra: Counter[str], missing: Counter[str]) -> str:
    """One slot that differs makes a look-alike; differences throughout make a paraphrase."""
    asked_other, stored_other = _weighty(extra), _weighty(missing)
    if not asked_other and not stored_other:
        return _of_order(asked, stored, FREE if extra or missing else frozenset())
    if not asked_other or not stored_other or max(asked_other, stored_other) < _FEWEST_REWORDED:
        return "substitution"
    first, second = ([word.key for word in facts.words if word.key not in FREE] for facts in (asked, stored))
    if _is_one_slot(first, second) or _is_aligned(first, second):
        return "substitution"
    shared = len(asked.keys & stored.keys)
    return "" if shared >= _LEAST_SHARED * len(asked.keys | stored.keys) else "substitution"


def _is_one_slot(first: list[str], second: list[str]) -> bool:
    """Whether the questions differ in one short stretch of words only."""
    head = _common_start(first, second)
    tail = _common_start(first[head:][::-1], second[head:][::-1])
    return max(len(first), len(second)) - head - tail <= _LONGEST_SLOT and head + tail > 0


def _common_start(first: list[str], second: list[str]) -> int:
    return next(
        (place for place, (one, other) in enumerate(zip(first, second, strict=False)) if one != other),
        min(len(first), len(second)),
    )


def _is_aligned(first: list[str], second: list[str]) -> bool:
    """Whether the questions are one template, filled in differently."""
    equal = sum(one == other for one, other in zip(first, second, strict=False))
    return len(first) == len(second) and 2 * equal >= len(first)


def _of_order(asked: Facts, stored: Facts, left_out: frozenset[str]) -> str:
    first, second = ([w for w in facts.words if w.key not in left_out] for facts in (asked, stored))
    is_same = _phrases(first) == _phrases(second) or [w.key for w in first] == [w.key for w in second]
    return "" if is_same else "arguments"


def _weighty(words: Counter[str]) -> int:
    return sum(count for key, count in words.items() if key not in FREE)


def _order_agreement(asked: Facts, stored: Facts) -> float:
    places = {word.key: place for place, word in enumerate(stored.words)}
    order = [places[word.key] for word in asked.words if word.key in places]
    neighbours = list(pairwise(order))
    return _share(sum(first <= second for first, second in neighbours), len(neighbours))


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0
