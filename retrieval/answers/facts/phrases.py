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
        self._words: list[Word] = []  # of the phrases that have ended
        self._floating: list[Word] = []
        self._phrase = 0  # number of the phrase being read
        self._role = ""
        self._expects_verb = False  # its first word is a verb, if more than one word is in it
        self._heads: list[Word] = []  # its words before any "of"
        self._owners: list[list[Word]] = []  # what follows each "of" in it
        self._joined_at = -1  # how many heads stand before "and"

    def add(self, word: Word) -> None:
        """Places a word that carries content."""
        role = "in" if word.kind is Kind.DATE and not self._role else self._role
        place = self._owners[-1] if self._owners else self._heads
        place.append(word._replace(role=role, phrase=self._phrase))

    def add_floating(self, word: Word) -> None:
        """Places a word that may stand anywhere in its sentence."""
        self._floating.append(word)

    def boundary(self, *, expects_verb: bool = False) -> None:
        """Ends the phrase: subject, verb or object follow."""
        self._start("", expects_verb=expects_verb)

    def preposition(self, role: str) -> None:
        """Starts a phrase under a preposition."""
        if role == "of":
            self._owners.append([])
            return
        if self._role in _LASTING_ROLES and not self._heads and not self._owners:
            role = self._role  # "from within X" is a place to come from
        self._start(role)

    def article(self) -> None:
        """Starts a noun phrase; under a preposition that has its object already, it is the next one."""
        if self._joined_at == len(self._heads):
            return
        if self._owners[-1] if self._owners else self._heads:
            self.boundary()

    def conjunction(self) -> None:
        """Notes that two halves are joined by "and"."""
        if not self._owners:
            self._joined_at = len(self._heads)

    def close(self) -> tuple[Word, ...]:
        """Returns the words in the compared order."""
        self.boundary()
        return (*self._words, *self._floating)

    def _start(self, role: str, *, expects_verb: bool = False) -> None:
        self._words.extend(self._ordered())
        self._phrase += 1
        self._role, self._expects_verb, self._joined_at = role, expects_verb, -1
        self._heads, self._owners = [], []

    def _ordered(self) -> list[Word]:
        """The phrase's words: owners before what they own, but after the verb of "improve speed of X"."""
        if self._owners:
            verb_count = 1 if self._expects_verb and len(self._heads) > 1 else 0
            owners = [word for owner in reversed(self._owners) for word in owner]
            return [*self._heads[:verb_count], *owners, *self._heads[verb_count:]]
        if self._joined_at == 1 and len(self._heads) == 2:
            # "A and B" is the same pair as "B and A".
            return sorted(self._heads, key=lambda word: word.key)
        return self._heads
