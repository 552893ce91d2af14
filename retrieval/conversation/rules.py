"""Makes a follow-up self-contained for retrieval, by rules: what it lacks stands before it, and a colon between.

`who founded it?` becomes `Pons Aelius: who founded it?`. The question itself is kept as it was asked: retrieval finds
more by a few words too many than by one that was replaced wrongly, and the model reads the original besides. Words come
from the user's own turns; from an answer only what no question has named, the person that was asked for or an item of
a list. A question that stands alone is given back as it is, byte for byte.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retrieval.conversation.following import Lean, lean_of
from retrieval.conversation.terms import Reading, read, text_of
from retrieval.conversation.topic import carried_words, is_of_these
from retrieval.speech import Speaker, Turn

RULES = "rules"
"""What reports call the rules."""

_LONGEST_FOLLOW_UP = 240  # code points; a longer question says itself what it is about
_JOINT = ": "


@dataclass(frozen=True, slots=True)
class Standalone:
    """A question as it is searched."""

    text: str
    changed: bool
    by: str  # what changed it: `rules`, or a backend's name; empty when nothing did


def leans_on_history(question: str, turns: Sequence[Turn]) -> bool:
    """Tells whether a question needs what was said before to be understood; never without an earlier user's turn."""
    return _lean(question, turns)[1] is not Lean.NOTHING


def standalone_by_rules(question: str, turns: Sequence[Turn]) -> Standalone:
    """Returns the question with the words that it lacks before it. Applied again it changes nothing."""
    asked, lean = _lean(question, turns)
    carried = carried_words(asked, lean, turns) if asked is not None and lean is not Lean.NOTHING else []
    if not carried:
        return unchanged(question)
    return Standalone(text_of(carried) + _JOINT + question.strip(), changed=True, by=RULES)


def unchanged(question: str) -> Standalone:
    """Returns the question as it is."""
    return Standalone(question, changed=False, by="")


def _lean(question: str, turns: Sequence[Turn]) -> tuple[Reading | None, Lean]:
    if len(question) > _LONGEST_FOLLOW_UP or not any(turn.speaker is Speaker.USER for turn in turns):
        return None, Lean.NOTHING
    asked = read(question)
    if not asked.tokens or _is_completed(question, turns):
        return None, Lean.NOTHING
    return asked, lean_of(asked)


def _is_completed(question: str, turns: Sequence[Turn]) -> bool:
    """Whether what it is about stands before it already, put there by its writer or by the rules."""
    head, joint, _ = question.partition(_JOINT)
    if not joint or not (about := read(head)).tokens:
        return False
    return any(not term.is_ordinary for term in about.terms) or is_of_these(
        {token.text for token in about.tokens}, turns
    )
