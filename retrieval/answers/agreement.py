"""Whether two answers say the same, decided from their texts alone.

Used to label evidence for the risk model: a fresh answer is held against the one that would have been served. A wrong
"agree" would loosen the bound on errors, a wrong "disagree" only costs hits, so every doubt counts as disagreement.
"""

from __future__ import annotations

import re

from retrieval.answers.facts.reading import read_facts
from retrieval.answers.facts.types import Facts, Kind
from retrieval.answers.question import normalise

_CITATION = re.compile(r"\s*\[\d{1,4}(?:\s*[,;]\s*\d{1,4})*\]")
_VALUES = frozenset({Kind.NUMBER, Kind.UNIT, Kind.DATE, Kind.VERSION, Kind.IDENTIFIER, Kind.SYMBOL, Kind.TURN})
_DIRECTIONS = frozenset(
    {"from", "before", "after", "since", "until", "above", "over", "under", "below", "beyond", "against", "than", "up"}
    | {"down", "off", "out", "or", "if", "but", "instead"}
)
_LEAST_CONTAINED = 0.75
_LEAST_JACCARD = 0.5
_YES = "yes"


def answers_agree(fresh: str, cached: str) -> bool:
    """Whether two answers say the same. Citation marks (`[1]`, `[1, 2]`) take no part; the order of the two neither.

    Texts that are equal after normalisation agree. Others agree when they state the same figures, units, dates,
    versions, identifiers, names, negations and words with an opposite, when what stands bare in both stands in the same
    order, when at most one of them has words that we do not know and the other lacks, and when at least
    three quarters of the shorter one's content is in the longer one.

    Limits: an answer that adds a figure or a name to an otherwise equal one disagrees with it, even where both are
    right; so do answers that are right in different words, in another order, or about another aspect. Two answers agree
    wrongly when they differ only in everyday words or in how they relate the same facts under prepositions. Nothing is
    known of the question, of synonyms beyond a short list, or of languages other than English, where all tokens must
    be the same.
    """
    first, second = _CITATION.sub("", fresh), _CITATION.sub("", cached)
    if normalise(first) == normalise(second):
        return True
    one, other = read_facts(first), read_facts(second)
    return bool(one.keys and other.keys) and _same_facts(one, other) and _same_content(one, other)


def _same_facts(one: Facts, other: Facts) -> bool:
    return (
        _stated(one) == _stated(other)
        and set(one.negations) == set(other.negations)
        and _DIRECTIONS & set(one.strict) == _DIRECTIONS & set(other.strict)
        and _verdict(one) == _verdict(other)
        and one.passive == other.passive
        and _in_order(one, other.keys) == _in_order(other, one.keys)
    )


def _stated(facts: Facts) -> frozenset[str]:
    """Figures and names. A first word's capital tells no name, so a name is what is one anywhere in the text."""
    return frozenset(word.key for word in facts.words if word.kind in _VALUES or word.kind is Kind.NAME)


def _verdict(facts: Facts) -> bool:
    return _YES in facts.keys


def _in_order(facts: Facts, shared: frozenset[str]) -> list[str]:
    """What we know no replacement for and stands under no preposition, in order, each once."""
    bare = (word.key for word in facts.words if not word.role and not word.ordinary and word.key in shared)
    return list(dict.fromkeys(bare))


def _same_content(one: Facts, other: Facts) -> bool:
    shared = one.keys & other.keys
    unknown = [any(not word.ordinary for word in facts.words if word.key not in shared) for facts in (one, other)]
    contained = len(shared) / min(len(one.keys), len(other.keys))
    jaccard = len(shared) / len(one.keys | other.keys)
    return not all(unknown) and contained >= _LEAST_CONTAINED and jaccard >= _LEAST_JACCARD
