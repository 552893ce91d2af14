"""Messages of a chat as this service asks: instructions, earlier turns, and the question, which is the user's last.

In a loop with tools the user's question stays the question: what the model called and what came back since are turns,
so that the model reads them before it reads the question again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from headrace.v1 import retrieval_pb2
from retrieval.errors import InvalidRequest
from retrieval.server.http.chat_body import Message

_TEXT_PARTS = ("text", "input_text")
_SPEAKERS = {
    "user": retrieval_pb2.SPEAKER_USER,
    "assistant": retrieval_pb2.SPEAKER_ASSISTANT,
    "tool": retrieval_pb2.SPEAKER_TOOL,
}


@dataclass(frozen=True, slots=True)
class Asking:
    """What the messages come to."""

    instructions: str
    history: tuple[retrieval_pb2.Turn, ...]
    question: str


def asking(messages: Sequence[Message]) -> Asking:
    """Returns what the messages ask.

    Raises:
        InvalidRequest: there is no question, or a part that is no text; names the field.
    """
    texts = [_text(message.content, f"messages[{place}].content") for place, message in enumerate(messages)]
    spoken = [place for place, message in enumerate(messages) if message.role in _SPEAKERS]
    system = [text for message, text in zip(messages, texts, strict=True) if message.role not in _SPEAKERS]
    last = max((place for place in spoken if messages[place].role == "user"), default=None)
    if last is None:
        raise InvalidRequest("messages", "at least one of the user", "messages hold no question; add one of the user")
    if messages[spoken[-1]].role == "assistant":
        bound = "a last message of the user, or of a tool"
        raise InvalidRequest("messages", bound, "the last message is the assistant's; an answer cannot be continued")
    names: dict[str, str] = {}  # of functions, by the calls so far
    turns = (_turn(messages[place], texts[place], names) for place in spoken if place != last)
    history = tuple(turn for turn in turns if turn.text.strip())
    return Asking("\n\n".join(text for text in system if text), history, texts[last])


def _turn(message: Message, text: str, names: dict[str, str]) -> retrieval_pb2.Turn:
    names.update((call.id, call.function.name) for call in message.tool_calls or () if call.id)
    if message.role == "assistant":
        calls = [f"{call.function.name}({call.function.arguments})" for call in message.tool_calls or ()]
        text = "\n".join(filter(None, (text, *(f"I call {call}" for call in calls))))
    if message.role == "tool":
        called = names.get(message.tool_call_id or "") or message.name or message.tool_call_id or "the function"
        text = f"{called} returned: {text or 'nothing'}"
    return retrieval_pb2.Turn(speaker=_SPEAKERS[message.role], text=text)


def _text(content: JsonValue, field: str) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(_part(part, f"{field}[{place}]") for place, part in enumerate(content))
    raise InvalidRequest(field, "a text or parts of text", f"{field} must be a text or a list of parts of text")


def _part(part: JsonValue, field: str) -> str:
    if isinstance(part, dict) and part.get("type") in _TEXT_PARTS and isinstance(text := part.get("text"), str):
        return text
    raise InvalidRequest(field, "a part of type text", f"{field} is no text, and only text is read here; leave it out")
