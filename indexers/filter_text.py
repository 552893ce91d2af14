"""Filters as people write them: `product = "git" AND year >= 2020 AND (lang IN ("en", "de") OR NOT EXISTS(draft))`.

NOT binds closer than AND, AND closer than OR; words of the language are read in any case. Values are quoted texts,
numbers, `true` and `false`; a date is a text. A field whose name is a word of the language, or has other characters,
stands in backquotes. `!=` and `NOT` are also true of documents without the field. Where a field has several values,
`year >= 2020 AND year < 2023` asks for one that keeps the first bound and one that keeps the second; `year (>= 2020 AND
< 2023)` asks for one that keeps both.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from indexers.errors import FilterEmpty, FilterSyntax, FilterTooDeep
from indexers.filters import Condition, Exists, Filter, MatchAny, Range
from indexers.types import Scalar
from indexers.values import is_scalar

WORDS = frozenset({"AND", "OR", "NOT", "IN", "EXISTS", "TRUE", "FALSE"})
MAX_CHARACTERS = 100_000
MAX_NESTING = 64  # parentheses and NOTs inside each other

_TOKEN = re.compile(
    r"""
    (?P<text>"(?:[^"\\]|\\.)*+" | '(?:[^'\\]|\\.)*+')
  | (?P<number>-?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.]))
  | (?P<name>[A-Za-z_][A-Za-z0-9_-]*)
  | (?P<quoted>`[^`]+`)
  | (?P<sign><=|>=|!=|=|<|>|\(|\)|,)
    """,
    re.VERBOSE | re.DOTALL,
)
_ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\", "/": "/"}
_LONGEST_NUMBER = 400  # digits; float64 ends at 309


def parse_filter(text: str) -> Filter:
    """Reads a filter; types are not checked, `indexers.schema.coerce_filter` does that.

    Raises:
        FilterEmpty: nothing but space.
        FilterSyntax: names the character, from 1, and what was expected there.
        FilterTooDeep: more than 64 parentheses and NOTs inside each other.
    """
    if len(text) > MAX_CHARACTERS:
        bound = f"at most {MAX_CHARACTERS} characters"
        raise FilterSyntax("filter", bound, f"the filter has {len(text)} characters, {bound} are allowed; shorten it")
    if not text.strip():
        raise FilterEmpty("filter", "at least one condition", "the filter is empty; leave it out or add a condition")
    parser = _Parser(_tokens(text))
    condition = parser.either(0)
    parser.expect_end()
    return condition if isinstance(condition, Filter) else Filter(must=(condition,))


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str  # text, number, name, quoted, sign, word, end
    source: str
    position: int  # from 1

    def is_word(self, word: str) -> bool:
        return self.kind == "word" and self.source.upper() == word


def _tokens(text: str) -> list[_Token]:
    tokens: list[_Token] = []
    position = _after_space(text, 0)
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise _syntax(position + 1, "a field, an operator or a quoted value", repr(text[position]))
        kind = match.lastgroup or ""
        word = kind == "name" and match[0].upper() in WORDS
        tokens.append(_Token("word" if word else kind, match[0], position + 1))
        position = _after_space(text, match.end())
    tokens.append(_Token("end", "the end", len(text) + 1))
    return tokens


def _after_space(text: str, position: int) -> int:
    while position < len(text) and text[position].isspace():
        position += 1
    return position


class _Parser:
    """Recursive descent, one method a level of precedence."""

    def __init__(self, tokens: Sequence[_Token]) -> None:
        self._tokens = tokens
        self._next = 0

    def either(self, depth: int) -> Condition:
        conditions = [self._both(depth)]
        while self._take_word("OR"):
            conditions.append(self._both(depth))
        return _any_of(conditions)

    def expect_end(self) -> None:
        if self._token.kind != "end":
            raise self._unexpected("AND, OR or the end")

    def _both(self, depth: int) -> Condition:
        conditions = [self._negated(depth)]
        while self._take_word("AND"):
            conditions.append(self._negated(depth))
        return _all_of(conditions)

    def _negated(self, depth: int) -> Condition:
        if depth > MAX_NESTING:
            bound = f"at most {MAX_NESTING} levels"
            raise FilterTooDeep("filter", bound, f"the filter nests deeper than {MAX_NESTING} levels; simplify it")
        if self._take_word("NOT"):
            return _none_of(self._negated(depth + 1))
        if self._take_sign("("):
            condition = self.either(depth + 1)
            self._expect_sign(")")
            return condition
        if self._take_word("EXISTS"):
            parenthesised = self._take_sign("(")
            field = self._field()
            if parenthesised:
                self._expect_sign(")")
            return Exists(field)
        return self._comparison(self._field())

    def _comparison(self, field: str) -> Condition:
        if self._take_word("IN"):
            return MatchAny(field, self._values())
        if self._take_word("NOT"):
            if not self._take_word("IN"):
                raise self._unexpected("IN")
            return _none_of(MatchAny(field, self._values()))
        if self._take_sign("("):
            return self._range(field)
        token = self._take()
        if token.source == "=":
            return MatchAny(field, (self._value(),))
        if token.source == "!=":
            return _none_of(MatchAny(field, (self._value(),)))
        self._next -= 1
        if token.source in _BOUNDS:
            return Range(field, **dict([self._bound()]))
        raise self._unexpected("=, !=, <, <=, >, >=, IN or NOT IN")

    def _range(self, field: str) -> Range:
        """Reads several bounds that one value must keep, as in `year (>= 2020 AND < 2023)`."""
        bounds = dict([self._bound()])
        while self._take_word("AND"):
            name, value = self._bound()
            if name in bounds:
                self._next -= 2
                raise self._unexpected("each bound once")
            bounds[name] = value
        self._expect_sign(")")
        return Range(field, **bounds)

    def _bound(self) -> tuple[str, Scalar]:
        name = _BOUNDS.get(self._token.source)
        if name is None:
            raise self._unexpected("<, <=, > or >=")
        self._next += 1
        return name, self._value()

    def _values(self) -> tuple[Scalar, ...]:
        self._expect_sign("(")
        values: list[Scalar] = []
        if self._take_sign(")"):
            return ()
        values.append(self._value())
        while self._take_sign(","):
            values.append(self._value())
        self._expect_sign(")")
        return tuple(values)

    def _value(self) -> Scalar:
        token = self._take()
        if token.kind == "text":
            return _unescaped(token)
        if token.kind == "number" and len(token.source) <= _LONGEST_NUMBER:
            number = int(token.source) if re.fullmatch(r"-?\d+", token.source) else float(token.source)
            if is_scalar(number):
                return number
        if token.is_word("TRUE") or token.is_word("FALSE"):
            return token.is_word("TRUE")
        self._next -= 1
        raise self._unexpected("a value: a text in quotes, a number, true or false")

    def _field(self) -> str:
        token = self._take()
        if token.kind == "name":
            return token.source
        if token.kind == "quoted":
            return token.source[1:-1]
        self._next -= 1
        raise self._unexpected("a field, NOT, EXISTS or (")

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _take(self) -> _Token:
        """Takes a token; the end can be taken, but always leads to an error."""
        token = self._token
        self._next += 1
        return token

    def _take_word(self, word: str) -> bool:
        return self._take_if(self._token.is_word(word))

    def _take_sign(self, sign: str) -> bool:
        return self._take_if(self._token.kind == "sign" and self._token.source == sign)

    def _take_if(self, fits: bool) -> bool:
        self._next += fits
        return fits

    def _expect_sign(self, sign: str) -> None:
        if not self._take_sign(sign):
            raise self._unexpected(f"{sign} or more" if sign == ")" else sign)

    def _unexpected(self, expected: str) -> FilterSyntax:
        token = self._token
        return _syntax(token.position, expected, token.source if token.kind == "end" else repr(token.source[:40]))


def _syntax(position: int, expected: str, found: str) -> FilterSyntax:
    message = f"filter, character {position}: expected {expected}, found {found}"
    return FilterSyntax("filter", f"{expected} at character {position}", message)


def _unescaped(token: _Token) -> str:
    def character(match: re.Match[str]) -> str:
        escape = match[1]
        if len(escape) == 5:
            return chr(int(escape[1:], 16))
        if escape not in _ESCAPED:
            raise _syntax(token.position + match.start() + 1, 'an escape such as \\" \\\\ \\n \\u00e9', repr(match[0]))
        return _ESCAPED[escape]

    return _ESCAPE.sub(character, token.source[1:-1])


_BOUNDS = {"<": "lt", "<=": "lte", ">": "gt", ">=": "gte"}


def _all_of(conditions: Sequence[Condition]) -> Condition:
    """Joins by AND; what is joined by AND already, and negations, need no level of their own."""
    if len(conditions) == 1:
        return conditions[0]
    must: list[Condition] = []
    must_not: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, Filter) and not condition.should:
            must += condition.must
            must_not += condition.must_not
        else:
            must.append(condition)
    return Filter(must=tuple(must), must_not=tuple(must_not))


def _any_of(conditions: Sequence[Condition]) -> Condition:
    if len(conditions) == 1:
        return conditions[0]
    should: list[Condition] = []
    for condition in conditions:
        if isinstance(condition, Filter) and not condition.must and not condition.must_not:
            should += condition.should
        else:
            should.append(condition)
    return Filter(should=tuple(should))


def _none_of(condition: Condition) -> Condition:
    if isinstance(condition, Filter):
        if condition.should and not condition.must and not condition.must_not:
            return _all_of([_none_of(one) for one in condition.should])
        if len(condition.must_not) == 1 and not condition.must and not condition.should:
            return condition.must_not[0]
    return Filter(must_not=(condition,))
