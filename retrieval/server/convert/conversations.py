"""Earlier turns, tools and the rest that comes with a question: messages to checked values, and reports back."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import NoReturn

from headrace.v1 import retrieval_pb2
from retrieval.errors import InvalidRequest
from retrieval.route import ConversationReport, Priority
from retrieval.speech import Speaker, Tools, Turn

MAX_TURNS = 200
MAX_HISTORY_BYTES = 1 << 20
MAX_INSTRUCTIONS_CHARS = 20_000
MAX_SESSION_CHARS = 256
MAX_TOOLS_BYTES = 1 << 20

_SPEAKERS: Mapping[int, Speaker] = {
    retrieval_pb2.SPEAKER_USER: Speaker.USER,
    retrieval_pb2.SPEAKER_ASSISTANT: Speaker.ASSISTANT,
    retrieval_pb2.SPEAKER_TOOL: Speaker.TOOL,
}
_PRIORITIES: Mapping[int, Priority] = {
    retrieval_pb2.PRIORITY_UNSPECIFIED: Priority.INTERACTIVE,
    retrieval_pb2.PRIORITY_INTERACTIVE: Priority.INTERACTIVE,
    retrieval_pb2.PRIORITY_BATCH: Priority.BATCH,
}


def turns_from_pb(history: Sequence[retrieval_pb2.Turn]) -> tuple[Turn, ...]:
    """Returns the earlier turns.

    Raises:
        InvalidRequest: names the turn and the bound.
    """
    if len(history) > MAX_TURNS:
        raise InvalidRequest(
            "history", f"at most {MAX_TURNS} turns", f"history has {len(history)} turns; send the last {MAX_TURNS}"
        )
    turns = tuple(_turn(place, turn) for place, turn in enumerate(history))
    size = sum(len(turn.text.encode()) for turn in turns)
    if size > MAX_HISTORY_BYTES:
        raise InvalidRequest(
            "history", f"at most {MAX_HISTORY_BYTES} bytes", f"history has {size} bytes; leave the oldest turns out"
        )
    return turns


def checked_instructions(text: str) -> str:
    """Returns the app's instructions.

    Raises:
        InvalidRequest: they are too long.
    """
    if len(text) > MAX_INSTRUCTIONS_CHARS:
        raise InvalidRequest(
            "instructions",
            f"at most {MAX_INSTRUCTIONS_CHARS} characters",
            f"instructions have {len(text)} characters; shorten them to {MAX_INSTRUCTIONS_CHARS}",
        )
    return text.strip()


def checked_session(name: str) -> str:
    """Returns the conversation's name.

    Raises:
        InvalidRequest: it is too long.
    """
    if len(name) > MAX_SESSION_CHARS:
        raise InvalidRequest(
            "session", f"at most {MAX_SESSION_CHARS} characters", f"session has {len(name)} characters; use a digest"
        )
    return name


def tools_from_pb(message: retrieval_pb2.Tools) -> Tools:
    """Returns the tools.

    Raises:
        InvalidRequest: they are no JSON array, or too long; or the choice is no JSON.
    """
    size = len(message.definitions.encode()) + len(message.choice.encode())
    if size > MAX_TOOLS_BYTES:
        raise InvalidRequest("tools", f"at most {MAX_TOOLS_BYTES} bytes", f"tools have {size} bytes; send fewer")
    definitions = _parsed("tools.definitions", message.definitions)
    if not isinstance(definitions, list) or not definitions or not all(isinstance(each, dict) for each in definitions):
        raise InvalidRequest(
            "tools.definitions", "a JSON array of objects", "tools.definitions must be a JSON array of tools, not empty"
        )
    if message.choice:
        _parsed("tools.choice", message.choice)
    return Tools(message.definitions, message.choice)


def priority_from_pb(number: int) -> Priority:
    """Returns the priority.

    Raises:
        InvalidRequest: it is none of the declared ones.
    """
    if number not in _PRIORITIES:
        bound = "one of the declared values"
        raise InvalidRequest("priority", bound, f"priority is {number}; it must be {bound}")
    return _PRIORITIES[number]


def conversation_to_pb(report: ConversationReport) -> retrieval_pb2.ConversationReport | None:
    """Returns what became of the earlier turns as a message; None when there were none."""
    if not report.turns:
        return None
    return retrieval_pb2.ConversationReport(
        turns=report.turns,
        kept=report.kept,
        dropped=report.dropped,
        summarised=report.summarised,
        rewritten=report.rewritten,
        rewritten_by=report.by,
    )


def _turn(place: int, turn: retrieval_pb2.Turn) -> Turn:
    speaker = _SPEAKERS.get(turn.speaker)
    if speaker is None:
        bound = "user, assistant or tool"
        raise InvalidRequest(f"history[{place}].speaker", bound, f"history[{place}].speaker must be {bound}")
    if not turn.text.strip():
        bound = "at least one visible character"
        raise InvalidRequest(f"history[{place}].text", bound, f"history[{place}].text is blank; leave the turn out")
    return Turn(speaker, turn.text)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _no_number(text[:32])


def _parsed(field: str, text: str) -> object:
    try:
        return json.loads(text, parse_constant=_no_number, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise InvalidRequest(field, "JSON", f"{field} is no JSON; send it as OpenAI's API takes it") from error
