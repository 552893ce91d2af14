"""The normal form of a question: two questions with equal normal forms are one question.

An equal question is served on its own evidence alone, with no estimate of risk, so only what no reader would take for
a difference is levelled: Unicode composition, white space, the shape of quotes and dashes, marks at the end, and the
case of words that have none of their own. `what's` and `what is` stay two questions; the guard calls them similar.
"""

from __future__ import annotations

import re
import unicodedata

_LEVELLED = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u02bc", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"),
        **dict.fromkeys("\u200b\ufeff\u00ad", ""),
        "\u2026": "...",
    }
)
_END = re.compile(r"[\s?.!\uff1f\u3002\uff01\u061f]")
_WORD = re.compile(r"[^\W_]+")
_CODE_FENCE = "```"
_LONGEST_UNIT = 3


def normalise(question: str) -> str:
    """Returns the normal form of a question. Applying it twice changes nothing.

    All but the first word keep their capitals, and so do words of several (`WHO`, `getName`), single letters and what
    follows a figure (`5 MB`): case may be all that tells two questions apart. White space inside fenced code is kept,
    for it may mean something.
    """
    composed = unicodedata.normalize("NFC", level_marks(question))
    spaced = composed.strip() if _CODE_FENCE in composed else " ".join(composed.split())
    folded = _WORD.sub(_folded_word, _without_end(spaced))
    return unicodedata.normalize("NFC", folded)


def level_marks(text: str) -> str:
    """Returns the text with plain quotes, dashes and dots for their typographic kinds, and without invisible marks."""
    return text.translate(_LEVELLED)


def _without_end(text: str) -> str:
    """Cuts question marks, full stops and exclamation marks off the end, except a factorial's."""
    end = len(text)
    while end and _END.match(text[end - 1]):
        if text[end - 1] == "!" and end > 1 and text[end - 2].isalnum():
            # `5!` and `n!` are numbers of their own; `now!` is not one.
            start = _WORD.search(text, _word_start(text, end - 1))
            if start and (start.group()[-1].isdigit() or len(start.group()) == 1):
                break
        end -= 1
    return text[:end]


def _word_start(text: str, end: int) -> int:
    start = end
    while start and text[start - 1].isalnum():
        start -= 1
    return start


def _folded_word(found: re.Match[str]) -> str:
    word = found.group()
    return word if _keeps_case(word, found.string, found.start()) else word.lower()


def _keeps_case(word: str, text: str, start: int) -> bool:
    if len(word) == 1:
        return not (word == "I" or (word == "A" and start == 0))
    if word[1:] != word[1:].lower() or (start > 0 and word[0].isupper()):
        return True  # a capital inside a sentence may be all that tells Turkey from a turkey
    return len(word) <= _LONGEST_UNIT and start > 0 and text[max(0, start - 2) : start].rstrip(" ")[-1:].isdigit()
