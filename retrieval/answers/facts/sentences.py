"""The state of reading a question, sentence by sentence: what it asks, denies and says of whom."""

from __future__ import annotations

from retrieval.answers.facts import vocabulary as known
from retrieval.answers.facts.phrases import Phrases
from retrieval.answers.facts.types import ANYTHING, Facts, Word

_ADVERB_ROLE = "adverb"
_NO_OBJECT = "end"


class Sentences:
    """Takes the parts of a question in order; `close` returns its facts."""

    def __init__(self) -> None:
        self.place = 0  # of the token being read, in its sentence
        self._phrases = Phrases()
        self._kinds: list[str] = []
        self._negations: list[str] = []
        self._waiting: list[str] = []  # negations whose word is still to come
        self._strict: list[str] = []
        self._modals: set[str] = set()
        self._persons: list[str] = []
        self._tense = ""
        self._kind = ""  # of this sentence
        self._open_preposition = ""  # one that has no object yet
        self.has_do = False  # in this sentence
        self._is_fronted = False  # the sentence opens with a preposition: "In 2023 ..."
        self._has_auxiliary = self._has_be = self._is_passive = self._has_subject = self._has_content = False

    def close(self) -> Facts:
        """Ends the question and puts together what was found."""
        self.end()
        words = self._phrases.close()
        return Facts(
            kinds=tuple(dict.fromkeys(self._kinds)) or ("what",),
            negations=tuple(sorted(self._negations)),
            strict=tuple(sorted(self._strict)),
            words=words,
            manner=(*sorted(self._modals), self._tense),
            persons=tuple(dict.fromkeys(self._persons)),
            passive=self._is_passive,
            keys=frozenset(word.key for word in words),
        )

    def end(self) -> None:
        """Ends the sentence."""
        self.pause()
        self._negations.extend(f"{negation}:" for negation in self._waiting)
        self._waiting.clear()
        if self._kind:
            self._kinds.append(self._kind)
        self._kind, self.place, self._is_fronted = "", -1, False
        self.has_do = self._has_auxiliary = self._has_be = self._has_subject = self._has_content = False

    def pause(self) -> None:
        """Ends the phrase."""
        self._without_object()
        self._phrases.boundary()

    def question_word(self, word: str, before: str, after: str) -> None:
        """Takes `who`, `when` ...: the first tells what the sentence asks; later ones count as words of their own."""
        self._without_object()
        self._phrases.boundary(expects_verb=word == "how")
        if not self._kind:
            self._kind = f"how {after}" if word == "how" and after in known.MEASURES else word
        elif before in ("and", "or", "&") or (word not in ("what", "polar") and word != self._kind):
            self._strict.append(f"asks {word}")

    def negation(self, name: str) -> None:
        """Takes `not`, `without` ..."""
        # In "isn't the pump running" what is denied comes after the subject, wherever that ends.
        if name == "not" and self._kind in ("polar", "why") and not self._has_content:
            self._negations.append(f"{name}:{ANYTHING}")
        elif name in known.SCOPED_NEGATIONS:
            self._waiting.append(name)
        else:
            self._negations.append(f"{name}:")

    def auxiliary(self, text: str, before: str, after: str) -> None:
        """Takes `is`, `did`, `can` ...; in the first place, or after "By 2030,", it asks for yes or no."""
        self._without_object()
        self._phrases.boundary(expects_verb=text not in known.BE)
        if self._has_auxiliary and self._has_subject and text in known.VERBS_TOO and after != "to":
            # "What does it do", "What does it have" are other questions than "What is it".
            self._strict.append(f"main {text}")
        if not self._kind and (self.place == 0 or before == "," or self._is_fronted):
            self._kind = "polar"
        if self._kind == "polar" and text in known.BE and not self._has_auxiliary:
            self._modals.add("be")
        self._has_auxiliary = True
        self.has_do = self.has_do or text in known.DO
        if text in known.HAVE and after == "to":
            self._modals.add("must")
        elif text in known.MODALS:
            self._modals.add(known.MODALS[text])
        self._has_be = self._has_be or text in known.BE
        if text in known.FUTURE:
            self._tense = "future"
        elif text in known.PAST and not self._tense:
            self._tense = "past"

    def person(self, name: str, *, is_article: bool) -> None:
        """Takes `I`, `your` ..."""
        self._persons.append(name)
        self._has_subject = True
        if is_article:
            self._phrases.article()
        else:
            self._open_preposition = ""
            self._phrases.boundary(expects_verb=True)

    def preposition(self, role: str, *, is_strong: bool = False) -> None:
        """Takes a preposition; a strong one counts whatever stands under it."""
        self._is_fronted = self._is_fronted or self.place == 0
        if is_strong:
            self._strict.append(role)
        elif role != "of" and self._kind and not self._has_content and self._has_be:
            # "What is in X" is another question than "What is X".
            self._strict.append(f"starts {role}")
        self._open_preposition = "" if is_strong or role in ("of", "to") else role
        self._phrases.preposition(role)

    def conjunction(self, text: str) -> None:
        """Takes `and`, `or`, `versus`."""
        self._phrases.conjunction()
        if text == "or":
            self._strict.append("or")

    def article(self) -> None:
        """Takes `the`, `a`, `this` ..."""
        self._phrases.article()

    def content(self, word: Word, text: str, before: str) -> None:
        """Takes a word that carries content, as it is written in small letters, and the text before it."""
        self._negations.extend(f"{negation}:{word.key}" for negation in self._waiting)
        self._waiting.clear()
        self._has_content = self._has_subject = True
        self._open_preposition = ""
        self._is_passive = self._is_passive or (self._has_be and before not in known.ARTICLES and _is_participle(text))
        if _floats(text):
            self._phrases.add_floating(word._replace(role=_ADVERB_ROLE))
        else:
            self._phrases.add(word)

    def _without_object(self) -> None:
        if self._open_preposition:
            self._strict.append(f"{_NO_OBJECT} {self._open_preposition}")
            self._open_preposition = ""


def _is_participle(text: str) -> bool:
    return text.endswith(("ed", "en")) or text in known.PARTICIPLES


def _floats(text: str) -> bool:
    return text in known.FLOATING or (text.endswith("ly") and len(text) > 5 and text not in known.NO_ADVERBS)
