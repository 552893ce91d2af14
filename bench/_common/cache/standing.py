"""The documents as a trace has left them, and a number for each state of the answer to a question.

Traces that are replayed one after the other each start from the set's own documents. Their version numbers start anew
too, so an answer that was made in an earlier pass is judged by a number of our own: two asks of a question have the
same one when the same strings are right or, where none are known, when no fact of its documents has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from bench._common.traces.events import Add, Ask, Delete, Trace, Update, What
from indexers.types import Document

_State: TypeAlias = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Writes:
    """What the index has to be told."""

    upserts: Sequence[Document] = ()
    deletes: Sequence[str] = ()


class Standing:
    """The documents of a set while traces change them."""

    def __init__(self, documents: Iterable[Document]) -> None:
        self._own = {document.document_id: document for document in documents}
        self._texts = {name: document.text for name, document in self._own.items()}
        self._facts = dict(self._texts)  # the texts without what was added and changes no answer
        self._numbers: dict[_State, int] = {}

    def start(self, trace: Trace) -> Writes:
        """Returns what brings the documents to the beginning of a trace."""
        held_back = {name for name in trace.held_back if name in self._own}
        wanted = {name: one.text for name, one in self._own.items() if name not in held_back}
        changed = [self._own[name] for name, text in wanted.items() if self._texts.get(name) != text]
        gone = [name for name in self._texts if name in held_back]
        self._texts, self._facts = wanted, dict(wanted)
        return Writes(changed, gone)

    def apply(self, event: Update | Delete | Add) -> Writes:
        """Returns what a write of the trace does to the index."""
        name = event.document_id
        if isinstance(event, Delete):
            self._texts.pop(name, None)
            self._facts.pop(name, None)
            return Writes(deletes=(name,))
        self._texts[name] = event.text
        if not (isinstance(event, Update) and event.what is What.TOUCHED):
            self._facts[name] = event.text
        return Writes(upserts=(replace(self._own[name], text=event.text),))

    def stamped(self, ask: Ask) -> Ask:
        """Returns the request with the number of the state that its answer is in now."""
        right = ask.answers or tuple(self._facts.get(name, "") for name in ask.documents)
        number = self._numbers.setdefault((ask.question_id, right), len(self._numbers))
        return replace(ask, answer_version=number)


def needed_part(documents: Sequence[Document], traces: Iterable[Trace], others: int) -> list[Document]:
    """Returns the documents that the traces speak of, and the first so many of the others to be told from them."""
    named = {name for trace in traces for name in _named(trace)}
    rest = [document.document_id for document in documents if document.document_id not in named]
    kept = named.union(rest[:others])
    return [document for document in documents if document.document_id in kept]


def _named(trace: Trace) -> Iterable[str]:
    yield from trace.held_back
    for event in trace.events:
        yield from event.documents if isinstance(event, Ask) else (event.document_id,)
