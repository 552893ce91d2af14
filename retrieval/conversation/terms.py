"""The words of a turn that retrieval can use, as they were written, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from retrieval.answers.facts.ordinary import CANONICAL, ORDINARY
from retrieval.answers.facts.stems import word_key
from retrieval.answers.facts.tokens import tokenise
from retrieval.answers.facts.turns import turn_key
from retrieval.answers.facts.types import Kind, Token
from retrieval.answers.facts.vocabulary import WEAK_PREPOSITIONS
from retrieval.conversation.words import FOREIGN_GRAMMAR, GRAMMAR, TELLING

VALUES = frozenset({Kind.NUMBER, Kind.DATE, Kind.VERSION})
_MARKS = frozenset({Kind.STOP, Kind.COMMA, Kind.SYMBOL})
_LONGEST_TERM = 64  # code points; longer ones are addresses and keys
_READ_CHARS = 512  # of a turn: its first and its last half of them
_JOINTS = WEAK_PREPOSITIONS.keys() | {"of", "the", "a", "an", "and"}
_LONGEST_JOINT = 2


class Term(NamedTuple):
    """A content word."""

    token: Token
    place: int  # among all tokens of its turn
    key: str  # equal keys mean the same
    is_name: bool  # a name, an identifier or a value: what a pronoun can stand for
    is_ordinary: bool  # of the common vocabulary, or one that turns the meaning: tells little by itself


def read(text: str) -> list[Token]:
    """Returns the tokens of a turn; of a long one those of its beginning and its end."""
    if len(text) > _READ_CHARS:
        text = f"{text[: _READ_CHARS // 2].rpartition(' ')[0]} . {text[-_READ_CHARS // 2 :].partition(' ')[2]}"
    return tokenise(text.lower() if text.isupper() and len(text.split()) > 1 else text)


def terms_of(tokens: Sequence[Token]) -> list[Term]:
    """Returns the content words among tokens."""
    grammar = GRAMMAR if language_of(tokens) == "en" else FOREIGN_GRAMMAR
    return [
        _term(token, place, starts=place == 0 or tokens[place - 1].kind is Kind.STOP)
        for place, token in enumerate(tokens)
        if token.kind not in _MARKS and len(token.raw) <= _LONGEST_TERM and not _is_grammar(token, grammar)
    ]


def language_of(tokens: Iterable[Token]) -> str:
    """Returns `de`, `fr` or `es` where their words of grammar outnumber the English ones, `en` otherwise."""
    words = [token.text for token in tokens]
    best, most = "en", sum(word in GRAMMAR for word in words)
    for language, telling in TELLING.items():
        count = sum(word in telling for word in words)
        if count > most:
            best, most = language, count
    return best


def written(tokens: Sequence[Token], terms: Iterable[Term]) -> list[Token]:
    """Returns the terms' tokens in order, with the prepositions and articles that join two neighbours."""
    chosen: list[Token] = []
    before = -1
    for term in terms:
        between = tokens[before + 1 : term.place] if before >= 0 else ()
        if len(between) <= _LONGEST_JOINT and all(token.text in _JOINTS for token in between):
            chosen.extend(between)
        chosen.append(term.token)
        before = term.place
    return chosen


def _is_grammar(token: Token, grammar: frozenset[str] | set[str]) -> bool:
    return token.kind is Kind.WORD and token.text in grammar


def _term(token: Token, place: int, *, starts: bool) -> Term:
    if token.kind is not Kind.WORD:
        return Term(token, place, token.text, is_name=True, is_ordinary=False)
    turn = turn_key(token.text)
    key = word_key(token.text)
    base = CANONICAL.get(key, key)
    is_name = token.raw[0].isupper() and not starts
    return Term(token, place, turn or base, is_name, is_ordinary=not is_name and (turn is not None or base in ORDINARY))
