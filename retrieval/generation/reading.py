"""Makes a sentence of a passage fit to be read by itself, or says that it is none.

Markup is taken off, words are never changed. Inline code keeps its backticks, since what is in it may look like a
citation mark: `names[1]` is code, and a footnote's `[1]` in the source is no citation of ours.
"""

from __future__ import annotations

import re

_LONGEST = 1000  # code points; what is longer is a list or a table that lost its shape

_FENCE = re.compile(r"\s*(?:```|~~~)")
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
_PROMPT_LINE = re.compile(r"\s*(?:>>>|\.\.\. |\$ |[A-Za-z]:\\|.*::=)")
_RULE_LINE = re.compile(r"^[ \t]*[-=~^*+#_|:.\s]{3,}$", re.MULTILINE)
_DIRECTIVE = re.compile(r"\s*(?:\.\. [\w:-]+|:[\w* -]+:\s)")
_MARKER = re.compile(r"^[ \t]*(?:>[ \t]*)*(?:(?:[-*+•‣]|\(?[0-9a-zA-Z]{1,3}[.)])[ \t]+)?(?:\[[ xX]\][ \t]+)?")
_QUOTE_MARK = re.compile(r"\n[ \t]*>[ \t]?")
_ENDS_SENTENCE = re.compile("[.!?\u2026\u3002\uff01\uff1f\uff61][\"'\u201d\u2019\u00bb)\\]*_`]*$")
_WORD = re.compile(r"[^\W\d_]{2,}")

_CODE_SPAN = re.compile(r"(`[^`\n]+`)")
_RST_LINK = re.compile(r"`([^`<]+?)\s*<[^`>]+>`__?")
_RST_ROLE = re.compile(r":[\w:+-]+:`~?([^`<]+?)(?:\s*<[^`>]+>)?`")
_DOUBLE_TICKS = re.compile(r"``([^`\n](?:[^`\n]|`(?!`))*)``")
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
_LINK = re.compile(r"\[([^\[\]]+)\]\([^)\s]*(?:\s+\"[^\"]*\")?\)")
# Underscores are left alone: `__init__` is a name far more often than a bold "init".
_BOLD = re.compile(r"(?<![\w*])\*\*(?=[^\s*])([^*]+?)(?<=\S)\*\*(?![\w*])")
_EMPHASIS = re.compile(r"(?<![\w*\\])\*(?=[^\s*])([^*\n]+?)(?<=[^\s*])\*(?![\w*])")
_NUMBERS = r"\[ *[0-9]+(?: *[,;] *[0-9]+)* *\]"
_SUBSCRIPT = re.compile(rf"[^\W\d][\w.]*(?<!\.)(?:{_NUMBERS})+")
_FOOTNOTE = re.compile(rf"({_SUBSCRIPT.pattern})|\ ?(?:{_NUMBERS}|\[\#[\w-]*\])_?")


def sentence_text(raw: str) -> str:
    """Returns the sentence without markup, on one line; empty when it is a heading, code, a table or a rule."""
    if len(raw) > _LONGEST:
        return ""
    if _FENCE.match(raw) or _HEADING.match(raw) or _PROMPT_LINE.match(raw) or _DIRECTIVE.match(raw):
        return ""
    if raw.lstrip().startswith("|") or raw.count(" | ") > 1:
        return ""
    text = _MARKER.sub("", _QUOTE_MARK.sub("\n", _without_underlined_heading(raw)), count=1)
    text = " ".join(_unmarked(" ".join(text.split())).split())
    return text if _reads_as_prose(text) else ""


def is_whole(text: str) -> bool:
    """Tells whether the text begins and ends as sentences do; what does not is a heading, an item or a beginning."""
    return _ENDS_SENTENCE.search(text) is not None and not text[:1].islower()


def _without_underlined_heading(raw: str) -> str:
    """Cuts off everything up to the last rule, and the rule: what stands over a rule is a heading."""
    *_, rest = _RULE_LINE.split(raw)
    return rest


def _unmarked(text: str) -> str:
    text = _RST_ROLE.sub(r"`\1`", _RST_LINK.sub(r"\1", text))
    text = _DOUBLE_TICKS.sub(r"`\1`", text)
    if text.count("`") % 2 or "``" in text:
        # A backtick without its partner would make code of everything after it.
        text = text.replace("`", "")
    parts = _CODE_SPAN.split(text)
    return "".join(part if position % 2 else _plain(part) for position, part in enumerate(parts))


def _plain(text: str) -> str:
    text = _LINK.sub(r"\1", _IMAGE.sub("", text))
    text = _BOLD.sub(r"\1", text)
    text = _EMPHASIS.sub(r"\1", text)
    text = _SUBSCRIPT.sub(r"`\g<0>`", _without_footnotes(text))
    return text.replace("::", ":") if text.rstrip().endswith("::") else text


def _without_footnotes(text: str) -> str:
    """Takes footnote marks out until none is left: taking one out can close the gap in another."""
    while (shorter := _FOOTNOTE.sub(lambda found: found[1] or "", text)) != text:
        text = shorter
    return text


def _reads_as_prose(text: str) -> bool:
    letters = sum(map(str.isalnum, text))
    return bool(_WORD.search(text)) and letters >= 0.7 * (len(text) - text.count(" "))
