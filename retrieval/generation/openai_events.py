"""What we read of a chat completion's events, and no more: servers add fields, leave some out, and set some to null."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue

from retrieval.types import ToolCall


def _zero_for_null(value: object) -> object:
    return 0 if value is None else value


Count = Annotated[int, BeforeValidator(_zero_for_null)]


class _Part(BaseModel):
    model_config = ConfigDict(extra="ignore")


class _Function(_Part):
    name: str | None = None
    arguments: str | None = None


class _ToolCall(_Part):
    index: int | None = None  # some servers send whole calls, and number them by their place
    id: str | None = None
    function: _Function | None = None

    def piece(self, place: int) -> ToolCall:
        function = self.function or _Function()
        index = place if self.index is None else self.index
        return ToolCall(index, self.id or "", function.name or "", function.arguments or "")


class EventDelta(_Part):
    """What an event adds to an answer."""

    content: str | None = None
    reasoning_content: str | None = None  # vLLM, SGLang, llama.cpp
    reasoning: str | None = None  # vLLM since 2026, Ollama, OpenRouter
    tool_calls: list[_ToolCall] | None = None
    function_call: _Function | None = None  # OpenAI's older form of a single call

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The pieces of tool calls."""
        if self.tool_calls:
            return tuple(call.piece(place) for place, call in enumerate(self.tool_calls))
        return () if self.function_call is None else (_ToolCall(function=self.function_call).piece(0),)


class _Choice(_Part):
    index: Count = 0
    delta: EventDelta | None = None
    finish_reason: str | None = None


class _PromptDetails(_Part):
    cached_tokens: Count = 0


class EventUsage(_Part):
    """Tokens, as the server counts them."""

    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    prompt_tokens_details: _PromptDetails | None = None


class _Timings(_Part):
    cache_n: Count = 0  # llama.cpp: prompt tokens taken from its cache


class CompletionEvent(_Part):
    """One event of a streamed chat completion."""

    model: str | None = None
    choices: list[_Choice] | None = None
    usage: EventUsage | None = None
    timings: _Timings | None = None
    error: JsonValue = None

    @property
    def choice(self) -> _Choice | None:
        """The part of the first answer, if the event has one."""
        for choice in self.choices or ():
            if choice.index == 0:
                return choice
        return None
