"""A question's text to tokens: words, numbers, versions, dates, identifiers and signs.

One regular expression finds pieces, and each piece is classed by its characters alone, which is remembered: questions
use few different pieces. Every alternative consumes what it matches without a second try, so time is linear.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

from retrieval.answers.facts.types import Kind, Token
from retrieval.answers.facts.units import UNITS
from retrieval.answers.facts.vocabulary import JOINTS, word_set
from retrieval.answers.question import level_marks

_PIECE = re.compile(
    r"""
    (?:https?|ftp|file)://\S+
    | `[^`\n]*`
    | (?<![\w-])--?[A-Za-z][\w-]*                       # a flag
    | [A-Za-z]:\\\S+ | \\\\\S+                          # a Windows path
    | (?<![\w/])(?:~|\.{1,2})?/[\w.\-]+(?:/[\w.\-]*)*   # a path
    | [A-Za-z]\+\+ | [A-Za-z]\#(?!\w) | (?<!\w)\.NET\b
    | (?<![\w.)\]])-?\.?\d\w*(?:[.,:/]\d\w*|-\d\w*|-[A-Za-z]\w*)*  # anything that begins with a figure
    | \w+(?:[.'@\-&]\w+|\(\))*                          # a word, a compound, a dotted name, a call
    | [.?!;\u3002\uff1f\uff01\u061f]+ | , | '(?=\s|$) | [^\w\s]
    """,
    re.VERBOSE,
)
_NUMBER = re.compile(r"-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")
_MEASURED = re.compile(r"(-?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?)-?([^\W\d_]+)")
_ORDINAL = re.compile(r"(\d+)(?:st|nd|rd|th)", re.IGNORECASE)
_VERSION = re.compile(r"v?\d+(?:\.\d+){2,}(?:[-+.]?\w+)*|v\d+(?:\.\d+)*(?:[-+.]?\w+)*", re.IGNORECASE)
_ISO_DATE = re.compile(r"\d{4}-\d{1,2}-\d{1,2}")
_DECADE = re.compile(r"\d{3,4}s")
_LOWER_CAMEL = re.compile(r"[a-z]{2,}[A-Z]\w*[a-z]|[a-z]+\(\)")
_FIGURE_KINDS = (
    (_NUMBER, Kind.NUMBER),
    (_ISO_DATE, Kind.DATE),
    (_DECADE, Kind.DATE),
    (_VERSION, Kind.VERSION),
)
_STOPS = frozenset(".?!;\u3002\uff1f\uff01\u061f")
_IGNORED = frozenset("\"'()[]{}:-_`/&\u00bf\u00a1\u3001\uff0c\uff1a")
_IRREGULAR = {
    "won't": ("will", "not"), "can't": ("can", "not"), "shan't": ("shall", "not"), "cannot": ("can", "not"),
    "ain't": ("is", "not"), "wont": ("will", "not"), "cant": ("can", "not"), "dont": ("do", "not"),
    "doesnt": ("does", "not"), "didnt": ("did", "not"), "isnt": ("is", "not"), "arent": ("are", "not"),
    "wasnt": ("was", "not"), "couldnt": ("could", "not"), "wouldnt": ("would", "not"), "shouldnt": ("should", "not"),
    "hasnt": ("has", "not"), "havent": ("have", "not"), "whats": ("what", "is"), "hows": ("how", "is"),
    "wheres": ("where", "is"), "whos": ("who", "is"), "gonna": ("going", "to"), "wanna": ("want", "to"),
    "let's": ("let", "us"), "im": ("i", "am"), "ive": ("i", "have"), "y'all": ("you",),
}  # fmt: skip
_CLITICS = {"n't": "not", "'re": "are", "'ve": "have", "'ll": "will", "'d": "would", "'m": "am"}
_IS_HOSTS = word_set("what who where when why how which it that there here he she this everything something everyone")
POSSESSIVE = "'s"


def tokenise(question: str) -> list[Token]:
    """Returns the tokens of a question in order; ornaments are left out, signs that may mean something are kept."""
    text = unicodedata.normalize("NFC", level_marks(question))
    found: list[Token] = []
    for piece in _PIECE.findall(text):
        found.extend(_classed(piece) if len(piece) <= 64 else [Token(piece.lower(), piece, Kind.IDENTIFIER)])
    return found


def is_lower_camel(piece: str) -> bool:
    """Whether a word is written like `getName` or called like `open()`."""
    return _LOWER_CAMEL.match(piece) is not None


@lru_cache(maxsize=1 << 15)
def _classed(piece: str) -> tuple[Token, ...]:
    first = piece[0]
    if not (first.isalnum() or first == "_") and len(piece) == 1:
        return _of_sign(piece)
    if first in _STOPS and not any(map(str.isalnum, piece)):
        return (Token(piece, piece, Kind.STOP),)
    if first == "`":
        return _of_code(piece.strip("`"))
    if any(map(str.isdigit, piece)):
        return _of_figure(piece)
    if first in "-/\\~." or not piece.replace("'", "").replace("-", "").replace("&", "").isalnum():
        return _of_odd(piece)
    return _of_word(piece)


def _of_sign(sign: str) -> tuple[Token, ...]:
    if sign in _STOPS:
        return (Token(sign, sign, Kind.STOP),)
    if sign == ",":
        return (Token(sign, sign, Kind.COMMA),)
    return () if sign in _IGNORED else (Token(sign, sign, Kind.SYMBOL),)


def _of_code(code: str) -> tuple[Token, ...]:
    return (Token(code.lower(), code, Kind.IDENTIFIER),) if code.strip() else ()


def _of_figure(piece: str) -> tuple[Token, ...]:
    if piece.startswith((".", "-.")):
        piece = piece.replace(".", "0.", 1)
    for pattern, kind in _FIGURE_KINDS:
        if pattern.fullmatch(piece):
            return (Token(piece.replace(",", "").lower(), piece, kind),)
    if ordinal := _ORDINAL.fullmatch(piece):
        return (Token(f"{int(ordinal[1])}th", piece, Kind.WORD),)
    measured = _MEASURED.fullmatch(piece)
    if measured and (measured[2] in UNITS or measured[2].lower() in UNITS):
        number = Token(measured[1].replace(",", ""), measured[1], Kind.NUMBER)
        return (number, Token(measured[2].lower(), measured[2], Kind.UNIT))
    return (Token(piece.lower(), piece, Kind.IDENTIFIER),)


def _of_odd(piece: str) -> tuple[Token, ...]:
    parts = piece.split(".")
    if len(parts) > 1 and all(len(part) == 1 for part in parts):
        joined = "".join(parts)
        return (Token(joined.lower(), joined, Kind.NAME),)
    if "_" not in piece and "." not in piece and "@" not in piece and any(unicodedata.combining(c) for c in piece):
        return _of_word(piece)
    return (Token(piece.lower(), piece, Kind.IDENTIFIER),)


def _of_word(piece: str) -> tuple[Token, ...]:
    lower = piece.lower()
    if lower in _IRREGULAR:
        return tuple(Token(part, part, Kind.WORD) for part in _IRREGULAR[lower])
    for clitic, word in _CLITICS.items():
        if lower.endswith(clitic) and len(lower) > len(clitic):
            return (*_of_word(piece[: -len(clitic)]), Token(word, clitic, Kind.WORD))
    if lower.endswith(POSSESSIVE) and len(lower) > 2:
        host = piece[:-2]
        is_verb = host.lower() in _IS_HOSTS
        return (*_of_word(host), Token("is", "is", Kind.WORD) if is_verb else Token(POSSESSIVE, POSSESSIVE, Kind.WORD))
    if "-" in piece and len(piece) > 1:
        return _of_compound(piece)
    return (Token(lower, piece, _word_kind(piece)),)


def _of_compound(piece: str) -> tuple[Token, ...]:
    """Reads `read-only` as two words; `in-memory`, `x-ray` as one, for their halves are no words of the sentence."""
    parts = [part for part in piece.split("-") if part]
    if any(len(part) == 1 or part.lower() in JOINTS for part in parts):
        joined = "".join(parts)
        return (Token(joined.lower(), joined, _word_kind(joined)),)
    return tuple(token for part in parts for token in _of_word(part))


def _word_kind(piece: str) -> Kind:
    if is_lower_camel(piece):
        return Kind.IDENTIFIER
    return Kind.NAME if len(piece) > 1 and piece[1:] != piece[1:].lower() else Kind.WORD
