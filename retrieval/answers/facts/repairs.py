"""Questions as people say them: "in Paris, no sorry, Venice" asks about Venice.

A cue of several words ("no sorry", "or rather", "I mean") tells that what stands before it is taken back. How much is
taken back is read from how the question goes on; a wrong guess leaves a word too many or too few, and the guard
refuses.
"""

from __future__ import annotations

import re

from retrieval.answers.facts.types import Kind, Token
from retrieval.answers.facts.vocabulary import JOINTS, MODALS, QUESTION_WORDS

_HUM = r"(?:oh|uh|uhh|um|umm|er|err|erm)"
_FILLER = rf"(?:{_HUM}|,)"
_TAKEN_BACK = (
    r"(?:sorry|wait|rather|actually|instead|i mean|i meant|make that|scratch that|forget that|let me rephrase)"
)
_ASKING = rf"(?:{'|'.join(QUESTION_WORDS)})"
# Before these, a bare "no" is no part of a sentence.
_NEVER_DENIED = rf"(?:{_ASKING}|tell me|the|a|an)"
_CUE = re.compile(
    rf" (?:{_FILLER} )*"
    rf"(?:(?:no )+(?:(?:{_FILLER}|no|{_TAKEN_BACK}) )*(?:{_HUM}|{_TAKEN_BACK}) "
    rf"|{_HUM} (?:{_FILLER} )*(?:{_TAKEN_BACK}|no) "
    rf"|or (?:(?:{_FILLER}|no) )*(?:rather|actually|i mean|i meant|no) "
    rf"|(?:i mean|i meant|oops|whoops|scratch that) "
    rf"|(?:no )+(?={_NEVER_DENIED} )"
    rf"|(?:sorry|{_HUM}) (?={_ASKING} |tell me ))"
    rf"(?:(?:{_FILLER}|{_TAKEN_BACK}|tell me) )*"
)
_SPEAKING_OF_MEANING = frozenset({"do", "does", "did", "can", "could", "what", "if", "as"})
_FARTHEST_CUE = 40  # tokens


def without_repairs(tokens: list[Token]) -> list[Token]:
    """Returns the tokens without what a speaker took back, and without the cue; others are returned as they are."""
    joined = "".join(f"{token.text.replace(' ', '_')} " for token in tokens[:_FARTHEST_CUE])
    cue = _CUE.search(joined)
    if cue is None:
        return tokens
    start = joined.count(" ", 0, cue.start() + 1)
    end = joined.count(" ", 0, cue.end())
    before, after = tokens[:start], tokens[end:]
    if (
        not after
        or before[-1].kind is Kind.STOP
        or (before[-1].text in _SPEAKING_OF_MEANING and cue.group().startswith(" i mean"))
    ):
        return tokens
    return [*before[: _kept(before, after[0])], *after]


def _kept(before: list[Token], first: Token) -> int:
    """How many tokens before the cue stand, given the first one after it."""
    if first.text in QUESTION_WORDS:
        return 0
    if first.text in JOINTS or first.text in MODALS:
        places = [place for place, token in enumerate(before) if token.text == first.text]
        return places[-1] if places else len(before) - 1
    kept = len(before) - 1
    while kept and before[kept].raw[:1].isupper() and before[kept - 1].raw[:1].isupper() and kept > 1:
        kept -= 1
    return kept
