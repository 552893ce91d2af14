"""What we read of a chat completion's events, and no more: servers add fields, leave some out, and set some to null."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import BeforeValidator, Field, JsonValue, ValidationError

from retrieval.generation.openai_usage import Accounts, EventPart, EventTimings, EventUsage
from retrieval.speech import ToolCall

_MOST_CALLS = 1 << 16
# A pair of surrogates, a half without its other, or whatever else is escaped.
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def _zero_for_null(value: object) -> object:
    return 0 if value is None else value


class _Function(EventPart):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(EventPart):
    # Some servers send whole calls, and number them by their place.
    index: int | None = Field(default=None, ge=0, lt=_MOST_CALLS)
    id: str | None = None
    function: _Function | None = None

    def piece(self, place: int) -> ToolCall:
        function = self.function or _Function()
        index = place if self.index is None else self.index
        return ToolCall(index, self.id or "", function.name or "", function.arguments or "")


class _Words(EventPart):
    text: str | None = None


class _ContentPart(EventPart):
    """A part of a content that is a list (Mistral): text, or thoughts, which are such a list again."""

    text: str | None = None
    thinking: str | list[_Words] | None = None

    @property
    def thought(self) -> str:
        if isinstance(self.thinking, list):
            return "".join(words.text or "" for words in self.thinking)
        return self.thinking or ""


class EventDelta(EventPart):
    """What an event adds to an answer."""

    content: str | list[_ContentPart] | None = None
    reasoning_content: str | None = None  # vLLM, SGLang, llama.cpp
    reasoning: str | None = None  # vLLM since 2026, Ollama, OpenRouter
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None  # OpenAI's older form of a single call

    @property
    def text(self) -> str:
        """What it adds to the text."""
        content = self.content
        return "".join(part.text or "" for part in content) if isinstance(content, list) else content or ""

    @property
    def thought(self) -> str:
        """What it adds to the thoughts."""
        if thought := self.reasoning_content or self.reasoning:
            return thought
        return "".join(part.thought for part in self.content) if isinstance(self.content, list) else ""

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The pieces of tool calls."""
        if self.tool_calls:
            return tuple(call.piece(place) for place, call in enumerate(self.tool_calls))
        return () if self.function_call is None else (_ToolCall(function=self.function_call).piece(0),)


class _Choice(EventPart):
    index: Annotated[int, BeforeValidator(_zero_for_null)] = 0
    delta: EventDelta | None = None
    finish_reason: str | None = None


class CompletionEvent(EventPart):
    """One event of a streamed chat completion."""

    model: str | None = None
    choices: list[_Choice] | None = None
    usage: Annotated[EventUsage | None, Accounts] = None
    timings: Annotated[EventTimings | None, Accounts] = None
    error: JsonValue = None

    @property
    def choice(self) -> _Choice | None:
        """The part of the first answer, if the event has one."""
        for choice in self.choices or ():
            if choice.index == 0:
                return choice
        return None


def read_event(data: str) -> CompletionEvent:
    """Reads an event. Half of a surrogate pair, which is no text, becomes U+FFFD.

    Raises:
        ValidationError: it is no event of a chat completion.
    """
    try:
        return CompletionEvent.model_validate_json(data)
    except ValidationError:
        mended = _ESCAPE.sub(_whole, data)
        if mended == data:
            raise
        return CompletionEvent.model_validate_json(mended)


def _whole(found: re.Match[str]) -> str:
    return r"\ufffd" if found[1] else found[0]
