"""A question to its facts: one pass over its tokens, each given its part by the lists of the vocabulary.

A question that hardly uses a word we know is in another language or in no sentence at all; there nothing may be dropped
or moved, and every token is taken for a name.
"""

from __future__ import annotations

from retrieval.answers.facts import vocabulary as known
from retrieval.answers.facts.frames import without_frames
from retrieval.answers.facts.ordinary import CANONICAL, ORDINARY
from retrieval.answers.facts.phrases import Phrases
from retrieval.answers.facts.quantities import level_quantities
from retrieval.answers.facts.stems import word_key
from retrieval.answers.facts.tokens import POSSESSIVE, tokenise
from retrieval.answers.facts.types import ANYTHING, Facts, Kind, Token, Word
from retrieval.answers.facts.units import unit_name

_STRICT_KEYS = {word_key(word): f"!{meaning}" for word, meaning in known.STRICT.items()} | {
    word: f"!{meaning}" for word, meaning in known.STRICT.items()
}
_KNOWN_WORDS = (
    frozenset(known.QUESTION_WORDS) | known.AUXILIARIES | frozenset(known.MODALS) | known.DROPPED | frozenset(known.PERSONS)
    | known.NEGATIONS | frozenset(known.WEAK_PREPOSITIONS) | frozenset(known.STRONG_PREPOSITIONS) | {"of", POSSESSIVE}
) - frozenset("was die an am so war du me us no a on as in".split())  # fmt: skip
_LEAST_KNOWN_SHARE = 0.2
_FEWEST_WORDS_TO_JUDGE = 4
_NOT_UNITS_ALONE = frozenset("min bar second seconds foot feet bit cal us ma bucks a c f g h k l m n s t v w".split())
_EXACT_KINDS = frozenset({Kind.NUMBER, Kind.UNIT, Kind.DATE, Kind.VERSION, Kind.IDENTIFIER, Kind.SYMBOL})


def read_facts(question: str) -> Facts:
    """Returns what a question states. Takes time linear in its length and never raises on any text."""
    tokens = tokenise(question.lower() if question.isupper() else question)
    return _Reader().read(level_quantities(without_frames(tokens))) if _is_english(tokens) else _unread(tokens)


def _is_english(tokens: list[Token]) -> bool:
    words = [token.text for token in tokens if token.kind in (Kind.WORD, Kind.NAME)]
    if not known.QUESTION_WORDS.keys().isdisjoint(words):
        return True
    known_count = sum(word in _KNOWN_WORDS for word in words)
    return known_count > _LEAST_KNOWN_SHARE * len(words) or _is_fragment(words)


def _is_fragment(words: list[str]) -> bool:
    return len(words) < _FEWEST_WORDS_TO_JUDGE and all(map(str.isascii, words))


def _unread(tokens: list[Token]) -> Facts:
    words = tuple(Word(token.text, Kind.NAME, "", False) for token in tokens if token.kind is not Kind.STOP)
    return Facts(("what",), (), (), words, (), frozenset(), passive=False, keys=frozenset(word.key for word in words))


class _Reader:
    """Collects the facts of one question."""

    def __init__(self) -> None:
        self.phrases = Phrases()
        self.kinds: list[str] = []
        self.negations: list[str] = []
        self.strict: list[str] = []
        self.modals: set[str] = set()
        self.tense = ""
        self.persons: set[str] = set()
        self.kind = ""  # of the sentence being read
        self.place = 0  # of the token in its sentence
        self.denied_at: list[int] = []  # negations that wait for their word
        self.after_be = self.passive = self.has_content = False

    def read(self, tokens: list[Token]) -> Facts:
        """Reads all tokens, then puts together what was found."""
        following = [*(token.text for token in tokens[1:]), ""]
        for token, after in zip(tokens, following, strict=False):
            self._take(token, after)
        self._end_sentence()
        words = self.phrases.close()
        return Facts(
            kinds=tuple(dict.fromkeys(self.kinds)) or ("what",),
            negations=tuple(sorted(self.negations)),
            strict=tuple(sorted(self.strict)),
            words=words,
            manner=(*sorted(self.modals), self.tense),
            persons=frozenset(self.persons),
            passive=self.passive,
            keys=frozenset(word.key for word in words),
        )

    def _take(self, token: Token, after: str) -> None:
        if token.kind is Kind.STOP:
            self._end_sentence()
        elif token.kind is Kind.COMMA:
            self.phrases.boundary()
        elif token.kind in _EXACT_KINDS:
            self._exact(token)
        elif token.kind is Kind.NAME and token.raw.isupper() and token.text in _KNOWN_WORDS:
            self._content(Word(token.raw, Kind.NAME, "", ordinary=False))
        elif not self._grammar(token.text, after):
            self._word(token)
        self.place += 1

    def _end_sentence(self) -> None:
        self.phrases.boundary()
        self.negations.extend("?" for _ in self.denied_at)
        self.denied_at.clear()
        if self.kind:
            self.kinds.append(self.kind)
        self.kind, self.place, self.after_be, self.has_content = "", -1, False, False

    def _grammar(self, text: str, after: str) -> bool:
        """Takes a word of grammar; False when the word is not one."""
        if text in known.QUESTION_WORDS or text == "whether":
            self._question_word(known.QUESTION_WORDS.get(text, "polar"), after)
        elif text in known.NEGATIONS:
            self._negation(text)
        elif text in known.MODALS:
            self._modal(text)
        elif text in known.AUXILIARIES:
            self._auxiliary(text)
        elif text in known.PERSONS:
            self.persons.add(known.PERSONS[text])
            self.phrases.article() if text in known.ARTICLES else self.phrases.boundary()
        else:
            return self._joint(text)
        return True

    def _joint(self, text: str) -> bool:
        """Takes prepositions, articles and other joints; False when the word is not one."""
        if text == "of" or text in known.WEAK_PREPOSITIONS:
            self.phrases.preposition(known.WEAK_PREPOSITIONS.get(text, "of"))
        elif text in known.STRONG_PREPOSITIONS:
            self.strict.append(known.STRONG_PREPOSITIONS[text])
            self.phrases.preposition(known.STRONG_PREPOSITIONS[text])
        elif text in ("and", "or", "vs", "versus", "&"):
            self.phrases.conjunction()
            if text == "or":
                self.strict.append("or")
        elif text in known.ARTICLES and text in known.DROPPED:
            self.phrases.article()
        else:
            return text in known.DROPPED or text == POSSESSIVE
        return True

    def _question_word(self, word: str, after: str) -> None:
        self.phrases.boundary()
        if self.kind and word not in ("what", "polar"):
            if not (word == self.kind):
                self.strict.append(f"wh:{word}")
        elif not self.kind:
            self.kind = f"how {after}" if word == "how" and after in known.MEASURES else word

    def _negation(self, text: str) -> None:
        name = "not" if text in ("not", "no", "never") else word_key(text)
        # In "isn't the pump running" what is denied comes after the subject, wherever that ends.
        if self.kind in ("polar", "why") and not self.has_content:
            self.negations.append(f"{name}:{ANYTHING}")
            return
        self.denied_at.append(self.place)
        self.negations.append(f"{name}:")

    def _modal(self, text: str) -> None:
        if not self.kind and self.place == 0:
            self.kind = "polar"
        self.phrases.boundary()
        self.modals.add(known.MODALS[text])
        if text in known.FUTURE:
            self.tense = "future"

    def _auxiliary(self, text: str) -> None:
        if not self.kind and self.place == 0:
            self.kind = "polar"
        self.phrases.boundary()
        self.after_be = self.after_be or text in known.BE
        if text in known.PAST and self.tense != "future":
            self.tense = "past"

    def _exact(self, token: Token) -> None:
        is_value = token.kind in (Kind.NUMBER, Kind.DATE, Kind.VERSION)
        raw = token.raw if token.kind is Kind.IDENTIFIER and token.raw != token.raw.upper() else token.text
        prefix = "#" if is_value else "~" if token.kind is Kind.UNIT else ""
        self._content(Word(prefix + (token.text if prefix else raw), token.kind, "", ordinary=False))

    def _word(self, token: Token) -> None:
        strict = _STRICT_KEYS.get(token.text) or _STRICT_KEYS.get(word_key(token.text))
        if strict:
            self._content(Word(strict, Kind.TURN, "", ordinary=False))
            return
        unit = unit_name(token.raw)
        if unit and token.text not in _NOT_UNITS_ALONE:
            self._content(Word(f"~{unit}", Kind.UNIT, "", ordinary=False))
            return
        stem = word_key(token.text)
        key = CANONICAL.get(stem, stem)
        is_name = token.kind is Kind.NAME or (self.place > 0 and token.raw[0].isupper())
        is_ordinary = key in ORDINARY and not (is_name and self.place > 0)
        self.passive = self.passive or (self.after_be and token.text.endswith(("ed", "en")))
        self._content(Word(key, Kind.NAME if is_name else Kind.WORD, "", is_ordinary))

    def _content(self, word: Word) -> None:
        if self.denied_at:
            self.negations = [n + word.key if n.endswith(":") else n for n in self.negations]
            self.denied_at.clear()
        self.has_content = True
        self.phrases.add(word)
