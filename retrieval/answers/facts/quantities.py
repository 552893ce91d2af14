"""Numbers in words and figures, units, currencies and dates, levelled to one spelling each.

`five kilograms`, `5 kg` and `5.0kg` become the number 5 and the unit kg; `5th of March 2023`, `March 5, 2023` and
`2023-03-05` become the same three dates. Zeros after a point count unless a unit follows: 3.1 and 3.10 may be versions.
"""

from __future__ import annotations

from retrieval.answers.facts.numerals import number_at, starts_number
from retrieval.answers.facts.types import Kind, Token
from retrieval.answers.facts.units import MONTHS, PERIODS, RELATIVE, SIGNS, WEEKDAYS, WORDS_TOO, unit_name
from retrieval.answers.facts.vocabulary import ARTICLES, word_set

_BEFORE_MONTHS = word_set("in on since until till by from before after during of this last next every early late mid")


def level_quantities(tokens: list[Token]) -> list[Token]:
    """Returns the tokens with numbers, units and dates in their compared form, in order."""
    levelled: list[Token] = []
    position = 0
    while position < len(tokens):
        taken, found = _read_at(tokens, position)
        levelled.extend(found)
        position += taken
    return levelled


def _read_at(tokens: list[Token], position: int) -> tuple[int, list[Token]]:
    """Returns how many tokens were read at a position, and what they became."""
    token = tokens[position]
    if token.kind is Kind.NUMBER or starts_number(tokens, position):
        return _number(tokens, position)
    if token.kind is Kind.SYMBOL and token.text in SIGNS:
        return _sign(tokens, position)
    if token.kind is Kind.UNIT:
        return 1, [Token(unit_name(token.raw) or token.text, token.raw, Kind.UNIT)]
    if token.kind is Kind.DATE:
        return 1, _iso_date(token)
    if token.kind is Kind.VERSION:
        return 1, [Token(_version_text(token.text), token.raw, Kind.VERSION)]
    return _word(tokens, position)


def _word(tokens: list[Token], position: int) -> tuple[int, list[Token]]:
    token = tokens[position]
    following = tokens[position + 1] if position + 1 < len(tokens) else None
    if token.text in MONTHS and _is_month(tokens, position):
        return _month(tokens, position)
    if token.text in WEEKDAYS:
        return 1, [Token(token.text, token.raw, Kind.DATE)]
    if following and token.text in RELATIVE and following.text in PERIODS:
        return 2, [Token(f"{RELATIVE[token.text]} {following.text}", token.raw, Kind.DATE)]
    if token.text == "version" and following and following.kind in (Kind.NUMBER, Kind.VERSION):
        return 2, [Token(_version_text(following.text), following.raw, Kind.VERSION)]
    return 1, [token]


def _number(tokens: list[Token], position: int) -> tuple[int, list[Token]]:
    taken, text = number_at(tokens, position)
    following = tokens[position + taken] if position + taken < len(tokens) else None
    if following and (unit := _unit(following, after_figure=tokens[position].kind is Kind.NUMBER)):
        return taken + 1, [Token(_plain(text), text, Kind.NUMBER), Token(unit, following.raw, Kind.UNIT)]
    if following and following.text in MONTHS and text.isdigit() and int(text[:3]) <= 31:
        return taken, [Token(f"day {int(text)}", text, Kind.DATE)]
    kind = Kind.DATE if len(text) == 4 and text.isdigit() and "1000" < text < "2100" else Kind.NUMBER
    return taken, [Token(text, text, kind)]


def _unit(token: Token, *, after_figure: bool) -> str | None:
    if token.kind is Kind.SYMBOL:
        return SIGNS.get(token.text)
    # One letter after a number word is a name ("one A"), after a figure a unit ("5 A").
    if token.kind not in (Kind.WORD, Kind.UNIT, Kind.NAME) or (len(token.text) == 1 and not after_figure):
        return None
    return None if token.text in ("in", "a", "second") and token.raw == token.text else unit_name(token.raw)


def _sign(tokens: list[Token], position: int) -> tuple[int, list[Token]]:
    unit = Token(SIGNS[tokens[position].text], tokens[position].raw, Kind.UNIT)
    if position + 1 < len(tokens) and tokens[position + 1].kind is Kind.NUMBER:
        taken, text = number_at(tokens, position + 1)
        return taken + 1, [Token(_plain(text), text, Kind.NUMBER), unit]
    return 1, [unit]


def _month(tokens: list[Token], position: int) -> tuple[int, list[Token]]:
    month = Token(f"month {MONTHS[tokens[position].text]}", tokens[position].raw, Kind.DATE)
    following = tokens[position + 1] if position + 1 < len(tokens) else None
    day = _day(following) if following else None
    return (2, [Token(day, day, Kind.DATE), month]) if day else (1, [month])


def _day(token: Token) -> str | None:
    digits = token.text.removesuffix("th") if token.kind is Kind.WORD else token.text
    if token.kind in (Kind.NUMBER, Kind.WORD) and digits.isascii() and digits.isdigit() and len(digits) <= 2:
        return f"day {int(digits)}"
    return None


def _is_month(tokens: list[Token], position: int) -> bool:
    token = tokens[position]
    if token.text not in WORDS_TOO:
        return True
    after = tokens[position + 1] if position + 1 < len(tokens) else None
    if after and (after.kind is Kind.NUMBER or _day(after)):
        return True
    before = tokens[position - 1] if position else None
    is_dated = before is not None and (
        before.text in _BEFORE_MONTHS or before.kind is Kind.NUMBER or bool(_day(before))
    )
    return is_dated or (position > 0 and token.raw[0].isupper() and before is not None and before.text not in ARTICLES)


def _iso_date(token: Token) -> list[Token]:
    parts = token.text.split("-")
    if len(parts) != 3 or not all(part.isdigit() for part in parts):
        return [token]
    year, month, day = parts
    texts = (f"day {int(day)}", f"month {int(month)}", year)
    return [Token(text, token.raw, Kind.DATE) for text in texts]


def _version_text(text: str) -> str:
    return text.removeprefix("v")


def _plain(text: str) -> str:
    """Drops zeros that say nothing once a unit tells that the number is a quantity."""
    return text.rstrip("0").rstrip(".") if "." in text else text
