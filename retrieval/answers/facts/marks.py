"""Marks in a question that are no punctuation: operators, flags, what makes another word of a word.

Reading drops what ends and parts sentences. All other marks may be all that tells two questions apart (`x != 5` and
`x = 5`, `10!` and `10`, `.net` and `net`, `rm -r` and `rm -R`), so both questions must have the same ones.
"""

from __future__ import annotations

import re

from retrieval.answers.question import level_marks

_MARK = re.compile(
    r"""
      (?<!\S)-{1,2}[^\W\d_][\w-]*            # a flag, in its own case
    | (?<=\d)!                                # a factorial
    | (?<=\w)!(?=\w)
    | (?<!\S)[.!#@&*^~|\\/]+(?=[^\W\d])       # a mark before a word
    | (?<!\S)\$(?=[^\W\d])                    # a variable; before a figure it is a unit
    | (?<=\w)[-+*#^~]+(?=[\s?.!,;:)]|$)       # a mark after a word
    | [=<>!~^|&+*/\\%\#@$:;]{2,}              # an operator of several marks
    | [:;]-?[()]                              # a face
    | [=<>≠≤≥≈~^|&+*\\]                       # an operator
    """,
    re.VERBOSE,
)
_END_MARKS = frozenset("!")


def odd_marks(question: str) -> tuple[str, ...]:
    """Returns the marks that are no punctuation, sorted."""
    return tuple(sorted(mark for mark in _MARK.findall(level_marks(question)) if not _ends(mark)))


def _ends(mark: str) -> bool:
    """Whether the mark only ends a sentence with force."""
    return len(mark) > 1 and set(mark) <= _END_MARKS
