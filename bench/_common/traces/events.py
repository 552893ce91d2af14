"""What happens in a trace, and the file that holds one: a line of JSON for each event, behind a line with the law."""

from __future__ import annotations

import enum
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeAlias


class Kind(enum.Enum):
    """How an ask stands to those before it."""

    FIRST = "first"  # of its question, in its own words
    EXACT = "exact repeat"  # the same text was asked before
    REWRITE = "rewrite"  # harmless: case, punctuation, politeness, word order, contractions
    PARAPHRASE = "paraphrase"  # other words of the set, for the same answer
    LOOK_ALIKE = "look-alike"  # nearly the same words, for another answer
    NEW = "new"  # asked once, of questions that the law does not draw


class What(enum.Enum):
    """What an update changes."""

    FACT = "fact replaced"  # an answer string, or a sentence where answers are not known
    TOUCHED = "fact kept"  # a sentence is added; all answers stay


@dataclass(frozen=True, slots=True)
class Ask:
    """One request. Two asks of one question and one answer version may be served the same answer, no others may."""

    number: int  # of the request, from 0
    conversation: int
    turn: int  # within the conversation, from 0
    text: str
    question_id: str  # which gold answer serves
    kind: Kind
    answers: tuple[str, ...] = ()  # strings that are right now; empty where none is known
    answer_version: int = 0  # goes up when a write changes what is right
    documents: tuple[str, ...] = ()  # that hold the answer


@dataclass(frozen=True, slots=True)
class Update:
    """A document has a new text."""

    document_id: str
    text: str
    what: What
    questions: tuple[str, ...] = ()  # whose answer it changes


@dataclass(frozen=True, slots=True)
class Delete:
    """A document is gone."""

    document_id: str
    questions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Add:
    """A document comes that was held back until now."""

    document_id: str
    text: str
    questions: tuple[str, ...] = ()


Event: TypeAlias = Ask | Update | Delete | Add
_TYPES: dict[str, type[Ask | Update | Delete | Add]] = {
    "ask": Ask, "update": Update, "delete": Delete, "add": Add,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Law:
    """How a trace is made. Shares are of the requests that repeat a question; what is left of 1 repeats the text."""

    requests: int = 2000
    zipf: float = 1.0  # exponent of the law by which questions are drawn, each draw for itself
    most_turns: int = 6  # conversations have 1 to so many turns, all equally likely
    open_conversations: int = 8  # that take turns at random
    rewrites: float = 0.20
    paraphrases: float = 0.25  # where the set has some
    look_alikes: float = 0.15
    new: float = 0.05  # of all requests
    writes: float = 0.02  # for each request; their documents are drawn by the questions' law, so the hot ones change
    touched: float = 0.1  # of the writes
    deletes: float = 0.1
    adds: float = 0.1


@dataclass(frozen=True, slots=True)
class Trace:
    """Events over a set from whose documents some are held back until they are added."""

    set_name: str
    seed: int
    law: Law
    held_back: tuple[str, ...]  # ids of documents that are not there at the start
    events: tuple[Event, ...]

    def asks(self) -> Iterator[Ask]:
        """Yields the requests in order."""
        return (event for event in self.events if isinstance(event, Ask))


def save(trace: Trace, path: Path) -> None:
    """Writes a trace."""
    head = {"set": trace.set_name, "seed": trace.seed, "law": asdict(trace.law), "held_back": trace.held_back}
    lines = [head, *({"event": _name(event), **asdict(event)} for event in trace.events)]
    content = "".join(json.dumps(line, ensure_ascii=False, default=_plain) + "\n" for line in lines)
    path.write_text(content, encoding="utf-8")


def load(path: Path) -> Trace:
    """Reads a trace that `save` wrote.

    Raises:
        ValueError: the file is none.
    """
    with path.open(encoding="utf-8") as file:
        try:
            head = json.loads(file.readline())
            events = tuple(_event(json.loads(line)) for line in file)
            return Trace(head["set"], head["seed"], Law(**head["law"]), tuple(head["held_back"]), events)
        except (KeyError, TypeError) as error:
            raise ValueError(f"{path.name} holds no trace of this format; make it anew with bench.traces") from error


def _event(line: dict[str, Any]) -> Event:
    fields: dict[str, Any] = {name: tuple(one) if isinstance(one, list) else one for name, one in line.items()}
    made = _TYPES[fields.pop("event")]
    for name, enumeration in (("kind", Kind), ("what", What)):
        if name in fields:
            fields[name] = enumeration(fields[name])
    return made(**fields)


def _name(event: Event) -> str:
    return type(event).__name__.lower()


def _plain(value: object) -> object:
    if isinstance(value, enum.Enum):
        return value.value
    raise TypeError(f"{type(value).__name__} has no place in a trace")
