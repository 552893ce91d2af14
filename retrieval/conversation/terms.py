"""The words of a turn that retrieval can use, as they were written, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from retrieval.answers.facts.ordinary import CANONICAL, ORDINARY
from retrieval.answers.facts.stems import word_key
from retrieval.answers.facts.tokens import tokenise
from retrieval.answers.facts.turns import turn_key
from retrieval.answers.facts.types import Kind, Token
from retrieval.answers.facts.vocabulary import WEAK_PREPOSITIONS
from retrieval.conversation.words import ENGLISH, FOREIGN_GRAMMAR, GRAMMAR, TELLING

# Tuples: hashing a member of an enumeration takes longer than comparing it with three.
VALUES = (Kind.NUMBER, Kind.DATE, Kind.VERSION)
_MARKS = (Kind.STOP, Kind.COMMA, Kind.SYMBOL)
_CLITIC_STARTS = ("'", "n't")
_LONGEST_TERM = 64  # code points; longer ones are addresses and keys
_READ_CHARS = 240  # of a turn: its first and its last half of them
_JOINTS = WEAK_PREPOSITIONS.keys() | {"of", "the", "a", "an", "and"}
_LONGEST_JOINT = 2


class Term(NamedTuple):
    """A content word."""

    token: Token
    place: int  # among all tokens of its turn
    key: str  # equal keys mean the same
    is_name: bool  # a name, an identifier or a value: what a pronoun can stand for
    is_ordinary: bool  # of the common vocabulary, or one that turns the meaning: tells little by itself


class Reading(NamedTuple):
    """A turn as it was read."""

    tokens: Sequence[Token]
    terms: Sequence[Term]  # the content words among the tokens
    language: str


def read(text: str) -> Reading:
    """Reads a turn; of a long one its beginning and its end."""
    if len(text) > _READ_CHARS:
        text = f"{text[: _READ_CHARS // 2].rpartition(' ')[0]} . {text[-_READ_CHARS // 2 :].partition(' ')[2]}"
    return reading_of(tokenise(text.lower() if text.isupper() and len(text.split()) > 1 else text))


def reading_of(tokens: Sequence[Token]) -> Reading:
    """Finds the language of tokens, and the content words among them."""
    language = _language_of({token.text for token in tokens})
    grammar = GRAMMAR if language == "en" else FOREIGN_GRAMMAR
    terms = [
        _term(token, place, starts=place == 0 or tokens[place - 1].kind is Kind.STOP)
        for place, token in enumerate(tokens)
        if token.kind not in _MARKS
        and not (token.kind is Kind.WORD and token.text in grammar)
        and len(token.raw) <= _LONGEST_TERM
    ]
    return Reading(tokens, terms, language)


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


def text_of(tokens: Iterable[Token]) -> str:
    """Returns tokens as text; what was written as one word with another (`n't`) stands as the word that it is."""
    return " ".join(token.text if token.raw.startswith(_CLITIC_STARTS) else token.raw for token in tokens)


def _language_of(words: set[str]) -> str:
    """Returns `de`, `fr` or `es` where their words of grammar outnumber the English ones, `en` otherwise."""
    best, most = "en", len(words & ENGLISH)
    for language, telling in TELLING.items():
        count = len(words & telling)
        if count > most:
            best, most = language, count
    return best


def _term(token: Token, place: int, *, starts: bool) -> Term:
    if token.kind is not Kind.WORD:
        return Term(token, place, token.text, is_name=True, is_ordinary=False)
    key, is_common = _classed(token.text)
    is_name = token.raw[0].isupper() and not starts
    return Term(token, place, key, is_name, is_ordinary=is_common and not is_name)


@lru_cache(maxsize=1 << 14)
def _classed(word: str) -> tuple[str, bool]:
    """The key of a word, and whether it is common: of everybody's vocabulary, or one that turns a meaning."""
    if turn := turn_key(word):
        return turn, True
    key = word_key(word)
    base = CANONICAL.get(key, key)
    return base, base in ORDINARY
