"""The words of a question in an order that does not depend on how it is phrased.

`revenue of unit K` and `unit K's revenue` name the same thing, so what follows "of" is put before what it belongs to.
Words under another preposition keep its name as their role, so a phrase may move without being mistaken for another.
"""

from __future__ import annotations

from retrieval.answers.facts.types import Kind, Word
from retrieval.answers.facts.vocabulary import STRONG_PREPOSITIONS

_LASTING_ROLES = STRONG_PREPOSITIONS.keys() | {"to"}


class Phrases:
    """Places words as they come; `close` returns them."""

    def __init__(self) -> None:
        self._words: list[Word] = []
        self._floating: list[Word] = []
        self._role = ""
        self._phrase = 0
        self._expects_verb = False  # the phrase's first word is a verb, if more than one word is in it
        self._start = 0  # where the noun phrase being read starts
        self._insert: int | None = None  # where words after "of" go
        self._inserted_any = False
        self._joined_at: int | None = None  # the right half of "A and B" starts here

    def add(self, word: Word) -> None:
        """Places a word that carries content."""
        role = "in" if word.kind is Kind.DATE and not self._role else self._role
        placed = word._replace(role=role, phrase=self._phrase)
        if self._insert is None:
            self._words.append(placed)
            return
        self._words.insert(self._insert, placed)
        self._insert += 1
        self._inserted_any = True

    def add_floating(self, word: Word) -> None:
        """Places a word that may stand anywhere in its sentence."""
        self._floating.append(word)

    def boundary(self, *, expects_verb: bool = False) -> None:
        """Ends the phrase: subject, verb or object follow."""
        self._order_pair()
        self._expects_verb = expects_verb
        self._role, self._insert, self._start = "", None, len(self._words)
        self._phrase += 1

    def preposition(self, role: str) -> None:
        """Starts a phrase under a preposition."""
        if role == "of":
            self._insert, self._inserted_any = self._head_start(), False
            return
        self._order_pair()
        if self._role in _LASTING_ROLES and len(self._words) == self._start:
            role = self._role  # "from within X" is a place to come from
        self._role, self._insert, self._start = role, None, len(self._words)
        self._phrase += 1

    def article(self) -> None:
        """Starts a noun phrase; under a preposition that has its object already, it is the next one."""
        if self._joined_at == len(self._words):
            return
        if self._insert is not None:
            if self._inserted_any:
                self.boundary()
        elif len(self._words) > self._start:
            self.boundary()

    def conjunction(self) -> None:
        """Notes that two halves are joined by "and"."""
        if self._insert is None and len(self._words) == self._start + 1:
            self._joined_at = len(self._words)

    def close(self) -> tuple[Word, ...]:
        """Returns the words in the compared order."""
        self.boundary()
        return (*self._words, *self._floating)

    def _head_start(self) -> int:
        """Where the noun begins that "of" belongs to: in "improve the speed of X" as in "improve speed of X"."""
        has_verb = self._expects_verb and len(self._words) > self._start + 1
        return self._start + 1 if has_verb else self._start

    def _order_pair(self) -> None:
        """Orders "A and B" by key where each half is one word: in either order they are the same pair."""
        at, self._joined_at = self._joined_at, None
        if at is not None and len(self._words) == at + 1 and self._start == at - 1:
            self._words[at - 1 : at + 1] = sorted(self._words[at - 1 : at + 1], key=lambda word: word.key)
