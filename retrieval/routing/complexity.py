"""How hard a question looks, in [0, 1], from what is known before any model is asked. It takes microseconds.

A logistic function of two things. *Whether the evidence is clear*: the best score and its lead over the next one. Their
weights are fitted (logistic regression; 825 train questions of two sets of questions to Wikipedia passages) to whether
the best passage is not the right one; with 2,200 questions they come out alike. Areas under the ROC curve for that, on
test questions (`python -m bench.complexity`): 0.92 and 0.94 on the two sets, and on sets that nothing was fitted on,
0.91 (course FAQ), 0.81 (documentation) and 0.75 (a bank's FAQ full of near-duplicates). The intercept is moved to even
odds, so that 0.5 is where evidence and kind say neither easy nor hard. *What the question asks for*: its kind, its
length, a conversation. No labels that we have tell of that; these weights are chosen, as said below, and by the labels
of the first they cost something (0.91, 0.93, 0.87, 0.80, 0.72).

Tried and left out: the entropy of the scores (nothing beyond the lead), the number of documents in the context and its
tokens (better where fitted, worse elsewhere: 0.91 fell to 0.88 on the course FAQ, 0.73 to 0.68 on the bank's).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from retrieval.routing.question_kind import QuestionKind, question_kind
from retrieval.types import Found

# Fitted, see above; the last is 1.23 as fitted and 2.7 for even odds.
_TOP_SCORE = -2.84
_LEAD = -25.1
_INTERCEPT = 3.95
# A greater lead says nothing more, and must not drown what the question asks for.
_CLEAR_LEAD = 0.2

# Chosen so that with the clearest evidence a look-up comes to about 0.05, an explanation to 0.2, a comparison to 0.4
# and several questions in one to 0.5: one passage answers the first, the last need words that no passage has.
_KIND = {
    QuestionKind.LOOKUP: 0.0,
    QuestionKind.YES_NO: 0.5,
    QuestionKind.EXPLANATION: 1.5,
    QuestionKind.COMPARISON: 2.5,
    QuestionKind.SEVERAL: 3.0,
}
# A question of twice the length that most stay below adds conditions; more words than that are often pasted text.
_LONG_WORDS = 20
_LENGTH = 1.0
# A question in a conversation leans on what was said.
_CONVERSATION = 0.5


@dataclass(frozen=True, slots=True)
class Features:
    """What the estimate looks at."""

    kind: QuestionKind
    words: int
    top_score: float  # of the best hit, as `Hit.score`; 0 when nothing was found
    lead: float  # over the second; 0 when there is none
    in_conversation: bool


def complexity(question: str, found: Found, *, in_conversation: bool) -> float:
    """Returns how hard the question looks, from 0 to 1."""
    return hardness(features(question, found, in_conversation=in_conversation))


def features(question: str, found: Found, *, in_conversation: bool) -> Features:
    """Reads the features of a question and of what was found for it."""
    scores = [hit.score for hit in found.hits[:2]]
    return Features(
        kind=question_kind(question),
        words=len(question.split()),
        top_score=scores[0] if scores else 0.0,
        lead=scores[0] - scores[1] if len(scores) > 1 else 0.0,
        in_conversation=in_conversation,
    )


def hardness(seen: Features) -> float:
    """Returns the logistic function of the weighted features."""
    length = min(1.0, max(0, seen.words - _LONG_WORDS) / _LONG_WORDS)
    log_odds = (
        _INTERCEPT
        + _TOP_SCORE * _within(seen.top_score, 1.0)
        + _LEAD * _within(seen.lead, _CLEAR_LEAD)
        + _KIND[seen.kind]
        + _LENGTH * length
        + _CONVERSATION * seen.in_conversation
    )
    return 1.0 / (1.0 + math.exp(-log_odds))


def _within(value: float, most: float) -> float:
    return min(max(value, 0.0), most)
