"""Numbers in words, and in words and figures together: `twenty-five`, `three hundred`, `5 million`."""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.answers.facts.types import Kind, Token
from retrieval.answers.facts.vocabulary import word_set

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve",
    "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
)  # fmt: skip
_TENS = ("twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_ONE_VALUES = {word: value for value, word in enumerate(_ONES)}
_TEN_VALUES = {word: 10 * value for value, word in enumerate(_TENS, start=2)}
_ZEROS = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_BEFORE_ONE = word_set("which this that the no any some every each another other does can should is for a")
_LONGEST_NUMBER = 30  # digits; multiplying further would make a text of quadratic length


def starts_number(tokens: Sequence[Token], position: int) -> bool:
    """Whether a number is written in words at a position. "One" is a number only where it counts something."""
    token = tokens[position]
    if token.kind is not Kind.WORD:
        return False
    if token.text != "one":
        return token.text in _ONE_VALUES or token.text in _TEN_VALUES or token.text in _ZEROS
    before = tokens[position - 1].text if position else ""
    after = tokens[position + 1] if position + 1 < len(tokens) else None
    return before not in _BEFORE_ONE and after is not None and after.kind is Kind.WORD and after.text != "of"


def number_at(tokens: Sequence[Token], position: int) -> tuple[int, str]:
    """Reads the number at a position: how many tokens it takes, and its value in figures."""
    taken, text = _base(tokens, position)
    while position + taken < len(tokens) and len(text) < _LONGEST_NUMBER:
        zeros = _ZEROS.get(tokens[position + taken].text)
        if zeros is None:
            break
        text = _shifted(text, zeros)
        taken += 1
    return taken, text


def _base(tokens: Sequence[Token], position: int) -> tuple[int, str]:
    first = tokens[position]
    if first.text in _TEN_VALUES:
        ones = _ONE_VALUES.get(tokens[position + 1].text, 0) if position + 1 < len(tokens) else 0
        is_pair = 0 < ones < 10
        return (2, str(_TEN_VALUES[first.text] + ones)) if is_pair else (1, str(_TEN_VALUES[first.text]))
    if first.text in _ONE_VALUES:
        return 1, str(_ONE_VALUES[first.text])
    return (0, "1") if first.text in _ZEROS else (1, first.text)


def _shifted(text: str, zeros: int) -> str:
    """Multiplies a decimal number by a power of ten, in text: no digit is lost."""
    whole, _, part = text.partition(".")
    if len(part) > zeros:
        whole, part = whole + part[:zeros], part[zeros:]
    else:
        whole, part = whole + part + "0" * (zeros - len(part)), ""
    sign, digits = ("-", whole[1:]) if whole.startswith("-") else ("", whole)
    return sign + (digits.lstrip("0") or "0") + (f".{part}" if part else "")
