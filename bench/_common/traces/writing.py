"""How the documents of a trace change, and what is right after each change."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from random import Random

from bench._common.traces.events import Add, Delete, Update, What
from bench._common.traces.questions import TraceQuestion
from indexers.types import Document

_SENTENCE = re.compile(r"[^.!?\n]{20,}[.!?]")
_KINDS = (re.compile(r"\d{4}"), re.compile(r"[\d.,]+"), re.compile(r"[A-Z]\w+( [A-Z]\w+)+"), re.compile(r"[A-Z]\w+"))


class Collection:
    """The documents as they stand, and the answers that are right now."""

    def __init__(
        self, documents: Iterable[Document], questions: Sequence[TraceQuestion], held_back: Sequence[str]
    ) -> None:
        self._texts = {document.document_id: document.text for document in documents}
        self._held_back = dict.fromkeys(held_back)
        self._gone = set(held_back)
        self._about: dict[str, list[TraceQuestion]] = defaultdict(list)
        for question in questions:
            for document_id in question.documents:
                self._about[document_id].append(question)
        self._answers = {question.question_id: question.answers for question in questions}
        self._versions = dict.fromkeys(self._answers, 0)
        self._strings = tuple(dict.fromkeys(one for question in questions for one in question.answers))
        self._serial = 0

    def state(self, question: TraceQuestion) -> tuple[tuple[str, ...], int]:
        """Returns the answers that are right now, and their version."""
        there = any(one not in self._gone for one in question.documents)
        return self._answers[question.question_id] if there else (), self._versions[question.question_id]

    def update(self, document_id: str, random: Random, touched: bool) -> Update | None:
        """Changes a document; None when it is gone, or has no fact to replace."""
        if document_id in self._gone:
            return None
        text = self._texts[document_id]
        if touched:
            self._serial += 1
            self._texts[document_id] = f"{text} This page was looked through for the {self._serial}. time."
            return Update(document_id, self._texts[document_id], What.TOUCHED)
        replaced = self._replace_fact(document_id, random)
        if replaced is None:
            return None
        old, new = replaced
        self._texts[document_id] = _replaced(text, old, new)
        text = self._texts[document_id]
        changed = [one for one in self._about[document_id] if self._follow(one, old, new, text)]
        return Update(document_id, text, What.FACT, _ids(changed))

    def delete(self, document_id: str) -> Delete | None:
        """Takes a document away; None when it is gone already."""
        if document_id in self._gone:
            return None
        self._gone.add(document_id)
        return Delete(document_id, self._raise(document_id))

    def add(self) -> Add | None:
        """Brings the next document that was held back; None when all are there."""
        if not self._held_back:
            return None
        document_id = next(iter(self._held_back))
        del self._held_back[document_id]
        self._gone.discard(document_id)
        return Add(document_id, self._texts[document_id], self._raise(document_id))

    def _raise(self, document_id: str) -> tuple[str, ...]:
        for question in self._about[document_id]:
            self._versions[question.question_id] += 1
        return _ids(self._about[document_id])

    def _replace_fact(self, document_id: str, random: Random) -> tuple[str, str] | None:
        """Returns an answer that the document holds and another string of the same kind; a sentence without answers."""
        text, about = self._texts[document_id], self._about[document_id]
        held = [one for question in about for one in self._answers[question.question_id] if _holds(text, one)]
        if held:
            # The longest form of an answer, so that no part of the old one stays behind.
            chosen = random.choice(held)
            old = max((one for one in held if chosen in one), key=len)
            others = [one for one in self._strings if _alike(one, old) and not _holds(text, one) and one not in old]
            return (old, random.choice(others)) if others else None
        sentences = _SENTENCE.findall(text)
        if any(self._answers[question.question_id] for question in about) or not sentences:
            return None
        self._serial += 1
        return random.choice(sentences), f" This changed, and rule {self._serial} holds in its place."

    def _follow(self, question: TraceQuestion, old: str, new: str, text: str) -> bool:
        """Brings a question's answers in line with a replaced string; tells whether they changed."""
        before = self._answers[question.question_id]
        after = tuple(dict.fromkeys(_replaced(one, old, new) for one in before))
        if before and after == before and not any(_holds(old, one) for one in before):
            return False
        if before and after == before and any(_holds(text, one) for one in before):
            return False  # another fact, of which a part of the replaced string has the words
        if before:
            # Shorter forms of what was replaced are wrong now as well.
            after = tuple(one for one in after if one == new or not _holds(old, one)) or (new,)
        self._answers[question.question_id] = after
        self._versions[question.question_id] += 1
        return True


def _ids(questions: Iterable[TraceQuestion]) -> tuple[str, ...]:
    return tuple(question.question_id for question in questions)


def _holds(text: str, answer: str) -> bool:
    return bool(_words(answer).search(text))


def _replaced(text: str, old: str, new: str) -> str:
    return _words(old).sub(lambda _: new, text)


def _words(answer: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w){re.escape(answer)}(?!\w)")


def _alike(one: str, other: str) -> bool:
    """Tells whether two answers are of one kind: both years, numbers, names, or several words."""
    return one != other and _kind(one) == _kind(other) and abs(len(one) - len(other)) <= 12


def _kind(answer: str) -> int:
    return next((number for number, kind in enumerate(_KINDS) if kind.fullmatch(answer)), len(_KINDS))
