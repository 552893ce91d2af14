"""What a served answer is worth: right, stale, or that of another question."""

from __future__ import annotations

import enum

from bench._common.traces.events import Ask


class Verdict(enum.Enum):
    """Of an answer that was made for one ask and served to another."""

    RIGHT = "right"
    STALE = "stale"  # the same question's, from before a write changed it
    WRONG = "wrong"  # another question's: a false hit


def judge(asked: Ask, served: Ask) -> Verdict:
    """Returns what the answer made for `served` is worth to `asked`.

    Two questions about one document with a common right answer serve each other: sets hold some questions twice.
    """
    if asked.question_id == served.question_id:
        return Verdict.RIGHT if asked.answer_version == served.answer_version else Verdict.STALE
    shared_documents = set(asked.documents) & set(served.documents)
    return Verdict.RIGHT if shared_documents and set(asked.answers) & set(served.answers) else Verdict.WRONG
