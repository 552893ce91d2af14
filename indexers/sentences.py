"""Splits text into sentences by rules: enough to cut a passage at a decent place, and to quote one sentence of it.

A rule-based splitter is small, fast, the same everywhere, and wrong in ways that can be read from this file. It knows
abbreviations, initials, numbered lines, inline code, fenced code (kept whole), list items, table rows and the full
stops of Chinese and Japanese. A line break alone ends no sentence, since plain text is often wrapped.
"""

from __future__ import annotations

import re
from bisect import bisect_right

_ABBREVIATION_LIST = (
    "approx cf dept dr ed eds eg e.g est fig figs gen hrsg i.e ie inkl bzw bspw z.b d.h ggf jr lt ltd mr mrs ms mt nr "
    "pp prof sen sr st vgl vol vols vs viz"
)
_ABBREVIATIONS = frozenset(_ABBREVIATION_LIST.split())
_BEFORE_NUMBERS = frozenset({"art", "ch", "eq", "fig", "figs", "no", "nos", "p", "pp", "sec", "vol"})

# Each alternative starts at a place that its predecessors cannot reach, so that scanning stays linear in the text.
_BREAK = re.compile(
    r"""
    (?P<fence>^[ \t>]*(?P<mark>```+|~~~+)[^\n]*$)
  | (?P<blank>\f|\n[^\S\n\f]*(?=\n))
  | (?P<line>\n(?=[ \t>]*(?:[-*+•]\s|\d{1,9}[.)]\s|\#{1,6}\s|\|)))
  | (?P<row>(?<=\|)[ \t]*\n)
  | (?P<stop>(?<![.!?…])[.!?…]++["'\u201d\u2019»)\]*_`]{0,8}(?=\s))
  | (?P<cjk>(?<![\u3002\uff01\uff1f\uff61])[\u3002\uff01\uff1f\uff61]++[\u300d\u300f\uff09\u3011\u201d\u2019]{0,8})
    """,
    re.VERBOSE | re.MULTILINE,
)
_HEADING = re.compile(r"[ \t]{0,3}#{1,6}\s")
_INLINE_CODE = re.compile(r"(?<!`)`[^`\n]+`(?!`)")
_LAST_WORD = re.compile(r"[^\s(\[\"'\u201c\u2018«]+$")


def sentence_spans(text: str) -> list[tuple[int, int]]:
    """Returns the code-point spans of the sentences, in order, without surrounding space; they hold all other text."""
    spans: list[tuple[int, int]] = []
    start = 0
    for end in _break_positions(text):
        start = _append(spans, text, start, end)
    _append(spans, text, start, len(text))
    return spans


def _append(spans: list[tuple[int, int]], text: str, start: int, end: int) -> int:
    piece = text[start:end]
    left = len(piece) - len(piece.lstrip())
    if left < len(piece):
        spans.append((start + left, start + len(piece.rstrip())))
    return end


def _break_positions(text: str) -> list[int]:
    """Returns where sentences end: increasing positions, some of which may enclose nothing but space."""
    code = [match.span() for match in _INLINE_CODE.finditer(text)]
    code_starts = [start for start, _ in code]
    breaks: list[int] = []
    position = 0
    _break_after_heading(text, 0, breaks)
    while match := _BREAK.search(text, position):
        position = match.end()
        kind = match.lastgroup
        if match["fence"] is not None:
            position = _fence_end(text, match)
            breaks += [match.start(), position]
        elif kind == "stop":
            inside = bisect_right(code_starts, match.start()) - 1
            in_code = inside >= 0 and match.start() < code[inside][1] - 1
            if not in_code and _ends_sentence(text, match):
                breaks.append(match.end())
        else:
            breaks.append(match.end())
            _break_after_heading(text, match.end(), breaks)
    return breaks


def _break_after_heading(text: str, start: int, breaks: list[int]) -> None:
    if _HEADING.match(text, start):
        end = text.find("\n", start)
        if end >= 0:
            breaks.append(end)


def _fence_end(text: str, opening: re.Match[str]) -> int:
    """Returns the end of fenced code; an unclosed fence ends with the text."""
    mark = opening["mark"]
    closing = re.compile(rf"^[ \t>]*{re.escape(mark)}{re.escape(mark[0])}*[ \t]*$", re.MULTILINE)
    found = closing.search(text, opening.end())
    return found.end() if found else len(text)


def _ends_sentence(text: str, match: re.Match[str]) -> bool:
    following = text[match.end() : match.end() + 80].lstrip()[:1]
    if following.islower():
        return False
    if match["stop"][0] != "." or match["stop"].startswith(".."):
        return True
    before = text[max(0, match.start() - 24) : match.start()]
    word = _LAST_WORD.search(before)
    return word is None or not _is_abbreviated(word[0], before[: word.start()], following)


def _is_abbreviated(word: str, before: str, following: str) -> bool:
    at_line_start = not before.rpartition("\n")[2].strip(" \t>")
    if at_line_start and (word.isdecimal() or len(word) == 1):
        return True  # the number of a list item
    if len(word) == 1 and word.isalpha() and word != "I":
        return True  # an initial
    folded = word.casefold()
    return folded in _ABBREVIATIONS or (folded in _BEFORE_NUMBERS and following.isdecimal())
