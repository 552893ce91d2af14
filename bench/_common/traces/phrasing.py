"""Other words for a question: harmless rewrites, the set's paraphrases, and look-alikes that ask something else."""

from __future__ import annotations

from collections.abc import Mapping
from random import Random

from bench._common.adversarial.questions import Asked
from bench._common.adversarial.swaps import Change
from bench._common.lookalikes import LOOK_ALIKE_KINDS, REWRITE_KINDS
from bench._common.traces.questions import TraceQuestion

# These put the question into a frame of their own, so their partner is no look-alike of the question as it was asked.
_FRAMED = ("swapped roles",)


def rewritten(question: TraceQuestion, random: Random) -> str | None:
    """Returns the question in a harmless other form; None when none is at hand."""
    return _changed(question, REWRITE_KINDS, random)


def look_alike(question: TraceQuestion, random: Random) -> str | None:
    """Returns a question with nearly the same words and another answer; None when none can be made."""
    kinds = {kind: change for kind, change in LOOK_ALIKE_KINDS.items() if kind not in _FRAMED}
    return _changed(question, kinds, random)


def _changed(question: TraceQuestion, kinds: Mapping[str, Change], random: Random) -> str | None:
    asked = Asked(question.text, "", question.product)
    for kind in random.sample(list(kinds), len(kinds)):
        texts = kinds[kind](asked, random)
        if texts is not None and texts[0] == question.text and texts[1] != question.text:
            return texts[1]
    return None
