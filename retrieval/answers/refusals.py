"""Why an answer to one question must not serve another: one rule per function, the surest first.

Every rule treats its two questions alike and returns a reason or an empty text.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from retrieval.answers.facts import vocabulary as known
from retrieval.answers.facts.ordinary import FREE
from retrieval.answers.facts.stems import bare_stem
from retrieval.answers.facts.turns import MILD_TURNS, plain_turn
from retrieval.answers.facts.types import ANYTHING, Facts, Kind, Word
from retrieval.answers.wording import Wording, wording

_HOW_MODALS = frozenset({"can", "should", "need", "would"})
_OPEN_MODALS = frozenset({"can", "would"})
_STRONG_ROLES = frozenset(known.STRONG_PREPOSITIONS.values())
_REASONS = (
    Kind.NUMBER, Kind.UNIT, Kind.DATE, Kind.VERSION, Kind.IDENTIFIER, Kind.TURN, Kind.NAME, Kind.SYMBOL, Kind.WORD,
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Difference:
    """The content words of two questions that have no partner in the other, with how often."""

    extra: Counter[str]  # of the asked one
    missing: Counter[str]  # of the stored one


def refusal(asked: Facts, stored: Facts, difference: Difference) -> str:
    """Returns the first reason that parts two questions, or an empty text."""
    worded = wording(asked, stored, difference.extra, difference.missing)
    is_reworded = worded is Wording.REWORDED
    return (
        _of_negation(asked, stored, difference)
        or _of_anchors(asked, stored, difference, is_reworded=is_reworded)
        or ("" if asked.marks == stored.marks else Kind.SYMBOL.value)
        or _of_kind(asked, stored, is_reworded=is_reworded)
        or _of_persons(asked, stored)
        or _of_direction(asked, stored, is_reworded=is_reworded)
        or _of_arguments(asked, stored)
        or _of_wording(asked, stored, worded, difference)
    )


def _of_negation(asked: Facts, stored: Facts, difference: Difference) -> str:
    if asked.negations != stored.negations and not _deny_alike(asked.negations, stored.negations):
        return "negation"
    extra, missing = difference.extra, difference.missing
    return "negation" if _denied(extra, missing) or _denied(missing, extra) else ""


def _deny_alike(asked: tuple[str, ...], stored: tuple[str, ...]) -> bool:
    """Whether the single negation of each is the same, where one does not tell what it denies."""
    if len(asked) != 1 or len(stored) != 1:
        return False
    (first, _, denied), (second, _, other) = asked[0].partition(":"), stored[0].partition(":")
    return first == second and ANYTHING in (denied, other)


def _denied(words: Counter[str], others: Counter[str]) -> bool:
    """Whether a word of the one stands in the other with a prefix that turns it: `lock` and `unlock`."""
    plain = {plain_turn(word) for word in others}
    return any(prefix + plain_turn(word) in plain for word in words for prefix in known.NEGATIVE_PREFIXES)


def _of_anchors(asked: Facts, stored: Facts, difference: Difference, *, is_reworded: bool) -> str:
    """Names, figures and words that turn the meaning, or that we do not know, must stand in both."""
    ours, theirs = _anchors(asked, difference.extra), _anchors(stored, difference.missing)
    if is_reworded and not (_turns(ours) and _turns(theirs)):
        ours, theirs = _weighing(ours, stored), _weighing(theirs, asked)
    kinds = {word.kind for word in (*ours, *theirs)}
    return next((kind.value for kind in _REASONS if kind in kinds), "")


def _anchors(facts: Facts, unmatched: Counter[str]) -> list[Word]:
    return [word for word in facts.words if not word.ordinary and word.key in unmatched]


def _turns(words: list[Word]) -> bool:
    return any(word.kind is Kind.TURN for word in words)


def _weighing(words: list[Word], other: Facts) -> list[Word]:
    """A paraphrase may bring in "good" or "easy", and say `pronounce` for `pronunciation`."""
    stems = {bare_stem(key) for key in other.keys}
    return [
        word
        for word in words
        if word.key not in MILD_TURNS and not (word.kind is Kind.WORD and bare_stem(word.key) in stems)
    ]


def _of_kind(asked: Facts, stored: Facts, *, is_reworded: bool) -> str:
    if asked.kinds != stored.kinds:
        return "question_kind"
    return "" if is_reworded or _manner(asked) == _manner(stored) else "question_kind"


def _of_persons(asked: Facts, stored: Facts) -> str:
    """Whoever asks how something is done asks the same of "me", of "you" and of nobody."""
    if set(asked.persons) == set(stored.persons):
        return "" if asked.persons == stored.persons else "arguments"
    is_named = asked.persons and stored.persons and not asked.kinds[0].startswith("how")
    return "name" if is_named else ""


def _manner(facts: Facts) -> tuple[str, ...]:
    if facts.kinds[0].startswith("how"):
        return tuple(modal for modal in facts.manner if modal not in _HOW_MODALS)
    if facts.kinds[0] == "polar":
        return facts.manner
    return tuple(modal for modal in facts.manner if modal not in _OPEN_MODALS)


def _of_direction(asked: Facts, stored: Facts, *, is_reworded: bool) -> str:
    if asked.strict == stored.strict:
        return ""
    if is_reworded and _decisive(asked) == _decisive(stored):
        return ""
    return "direction"


def _decisive(facts: Facts) -> list[str]:
    return [word for word in facts.strict if word in known.DECISIVE]


def _of_arguments(asked: Facts, stored: Facts) -> str:
    """What stands in both must stand in the same places, whichever way the phrases are put."""
    fixed = {word.key for facts in (asked, stored) for word in facts.words if not word.ordinary}
    fixed &= asked.keys & stored.keys
    first, second = ([word for word in facts.words if word.key in fixed] for facts in (asked, stored))
    if _phrases(first) != _phrases(second):
        if [word.key for word in first] != [word.key for word in second]:
            return "arguments"
        if any(_turned(one, other) for one, other in zip(first, second, strict=True)):
            return "direction"
    return "arguments" if asked.passive != stored.passive and len(first) > 1 else ""


def _turned(one: Word, other: Word) -> bool:
    return one.role != other.role and not _STRONG_ROLES.isdisjoint((one.role, other.role))


def _phrases(words: list[Word]) -> list[tuple[str, list[str]]]:
    """The words by phrase, in no order of phrases; subject, verb and object are one, for their order counts."""
    phrases: dict[tuple[str, int], list[str]] = {}
    for word in words:
        phrases.setdefault((word.role, word.phrase if word.role else 0), []).append(word.key)
    return sorted((role, keys) for (role, _), keys in phrases.items())


def _of_wording(asked: Facts, stored: Facts, worded: Wording, difference: Difference) -> str:
    if worded is Wording.REWORDED:
        return ""
    if worded is not Wording.EQUAL:
        return "substitution"
    left_out = FREE if difference.extra or difference.missing else frozenset()
    first, second = ([word for word in facts.words if word.key not in left_out] for facts in (asked, stored))
    is_same = _phrases(first) == _phrases(second) or [word.key for word in first] == [word.key for word in second]
    return "" if is_same else "arguments"
