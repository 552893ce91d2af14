"""What kind of question it is, by its words alone: lists and regular expressions that take microseconds."""

from __future__ import annotations

import enum
import re

_COMPARISON = re.compile(
    r"\b(?:compare[ds]?|comparing|comparison|differ(?:s|ent|ence|ences)?|versus|vs|better|worse|pros and cons|"
    r"trade-?offs?|advantages?|disadvantages?|rather than|similarit(?:y|ies))\b"
)
_SEVERAL = re.compile(
    r"\?.+\?|;|\b(?:and|or|as well as)\s+(?:also\s+)?(?:what|who|when|where|which|why|how|whether|is|are|do|can)\b|"
    r"\b(?:each of|all of the|list (?:all|the)|step[- ]by[- ]step|summari[sz]e|respectively)\b",
    re.DOTALL,
)
_EXPLANATION = re.compile(
    r"\bwhy\b|\bhow\b(?!\s+(?:many|much|long|old|often|far|big|tall|large|high|deep|fast|heavy)\b)|"
    r"\b(?:explain|describe|reasons?|causes?|consequences?|implications?|purpose|what happens|effects?)\b"
)
_YES_NO = re.compile(
    r"^(?:is|are|was|were|am|do|does|did|can|could|may|might|must|shall|should|will|would|has|have|had)\b"
)


class QuestionKind(enum.Enum):
    """What a question asks for, the most demanding first where several would do."""

    SEVERAL = "several"  # more than one thing
    COMPARISON = "comparison"
    EXPLANATION = "explanation"  # why, how, to what end
    YES_NO = "yes_no"
    LOOKUP = "lookup"  # a fact: who, when, where, which, how many, or mere keywords


_KINDS = (
    (_SEVERAL, QuestionKind.SEVERAL),
    (_COMPARISON, QuestionKind.COMPARISON),
    (_EXPLANATION, QuestionKind.EXPLANATION),
    (_YES_NO, QuestionKind.YES_NO),
)


def question_kind(question: str) -> QuestionKind:
    """Tells the kind of a question in English; what says nothing that is known counts as a look-up."""
    text = question.strip().casefold()[:2000]
    return next((kind for pattern, kind in _KINDS if pattern.search(text)), QuestionKind.LOOKUP)
