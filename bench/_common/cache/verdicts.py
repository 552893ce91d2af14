"""What served answers are worth, given what the model would have said at the time.

A trace tells the state of an answer by its strings. Where a set names none, only the documents are known, and a write
to a part of one that the answer does not rest on makes nothing old: if the model, asked anew, says what was served,
that was right.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bench._common.traces.events import Ask
from bench._common.traces.judging import Verdict, judge

_MARK = re.compile(r"\s*\[\d+\]")


@dataclass(frozen=True, slots=True)
class Requests:
    """The requests of a replay in order, and what the model says to each without a cache; empty where nobody asked."""

    asks: Sequence[Ask]
    said: Sequence[str] = ()

    def verdict(self, place: int, made_for: int) -> Verdict:
        """Returns what the answer that was made for one request is worth to another; both by their place."""
        asked = self.asks[place]
        verdict = judge(asked, self.asks[made_for])
        if verdict is Verdict.STALE and not asked.answers and self.said and self.said[place] == self.said[made_for]:
            return Verdict.RIGHT
        return verdict


def without_marks(text: str) -> str:
    """Returns an answer without its citation marks, whose numbers change with the context."""
    return _MARK.sub("", text)
