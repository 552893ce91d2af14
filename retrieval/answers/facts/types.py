"""What is read from one question, kept beside a stored answer and compared with the facts of another question."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import NamedTuple

ANYTHING = "*"  # what a negation denies when its place does not tell


class Kind(enum.Enum):
    """What a token of a question is; the value is the reason given when two questions do not agree in it."""

    WORD = "substitution"
    NAME = "name"
    NUMBER = "number"
    UNIT = "unit"
    DATE = "date"
    VERSION = "version"
    IDENTIFIER = "identifier"
    TURN = "direction"  # quantifiers, superlatives, words with an opposite
    SYMBOL = "symbol"
    STOP = "stop"
    COMMA = "comma"


class Token(NamedTuple):
    """A piece of a question as written, before its place in the sentence is known."""

    text: str  # lower case
    raw: str  # as written
    kind: Kind


class Word(NamedTuple):
    """A piece of a question that carries content."""

    key: str  # equal keys mean the same
    kind: Kind
    role: str  # the preposition it stands under; empty for subject, verb and object
    phrase: int  # which phrase of the question it stands in; tells only equal from different
    ordinary: bool  # a word of the common vocabulary, which a paraphrase may replace


@dataclass(frozen=True, slots=True)
class Facts:
    """What a question states."""

    kinds: tuple[str, ...]  # what each of its sentences asks for: "who", "how many", "polar"; "what" for a fragment
    negations: tuple[str, ...]  # sorted: each negation with the word it denies
    strict: tuple[str, ...]  # sorted: quantifiers, superlatives, directions: words that turn the meaning
    words: tuple[Word, ...]  # in order, with `X of Y` read as `Y X`
    manner: tuple[str, ...]  # sorted: modality, tense
    persons: tuple[str, ...]  # whose matter it is, each once, in order: "i", "you", "he", "she", "they"
    passive: bool
    keys: frozenset[str]  # of `words`
    marks: tuple[str, ...] = ()  # sorted: those that are no punctuation
