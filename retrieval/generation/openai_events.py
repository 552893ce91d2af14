"""What we read of a chat completion's events, and no more: servers add fields, leave some out, and set some to null."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, JsonValue

from retrieval.types import FinishReason, Usage

_FINISH_REASONS = {"length": FinishReason.LENGTH, "content_filter": FinishReason.CONTENT_FILTER}
_ABORTED = frozenset({"abort", "aborted", "cancelled", "error"})


def _zero_for_null(value: object) -> object:
    return 0 if value is None else value


Count = Annotated[int, BeforeValidator(_zero_for_null)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Delta(_Part):
    content: str | None = None
    reasoning_content: str | None = None  # vLLM, SGLang, llama.cpp
    reasoning: str | None = None  # Ollama, OpenRouter


class _Choice(_Part):
    index: Count = 0
    delta: _Delta | None = None
    finish_reason: str | None = None


class _PromptDetails(_Part):
    cached_tokens: Count = 0


class _Usage(_Part):
    prompt_tokens: Count = 0
    completion_tokens: Count = 0
    prompt_tokens_details: _PromptDetails | None = None


class _Timings(_Part):
    cache_n: Count = 0  # llama.cpp: prompt tokens taken from its cache


class CompletionEvent(_Part):
    """One event of a streamed chat completion."""

    model: str | None = None
    choices: list[_Choice] | None = None
    usage: _Usage | None = None
    timings: _Timings | None = None
    error: JsonValue = None

    @property
    def text(self) -> str:
        """The text that the event adds; the first answer's, if there are several."""
        return "".join(choice.delta.content or "" for choice in self._first() if choice.delta)

    @property
    def is_token(self) -> bool:
        """Whether the model has written something, be it only thought."""
        deltas = [choice.delta for choice in self._first() if choice.delta]
        return any(delta.content or delta.reasoning_content or delta.reasoning for delta in deltas)

    @property
    def finish_reason(self) -> str | None:
        """Why the answer ends with this event, in the server's word; None while it goes on."""
        return next((choice.finish_reason for choice in self._first() if choice.finish_reason), None)

    def _first(self) -> list[_Choice]:
        return [choice for choice in self.choices or [] if choice.index == 0]


class Completion:
    """What the events of one answer have said so far, besides its text."""

    def __init__(self, model: str) -> None:
        self.model = model
        self._finish_reason: str | None = None
        self._usage = _Usage()
        self._cached = 0
        self._written = False
        self._closed = False

    def take(self, event: CompletionEvent) -> None:
        """Reads an event; usage may come with any of them, or after the last."""
        self.model = event.model or self.model
        self._written |= bool(event.text)
        self._finish_reason = event.finish_reason or self._finish_reason
        if event.usage is not None:
            self._usage = event.usage
        details = self._usage.prompt_tokens_details
        self._cached = max(self._cached, details.cached_tokens if details else 0)
        if event.timings is not None:
            self._cached = max(self._cached, event.timings.cache_n)

    def close(self) -> None:
        """Notes `[DONE]`: the server says that nothing more comes."""
        self._closed = True

    @property
    def finished(self) -> bool:
        """Whether the answer is whole: the model gave a reason, or the server closed an answer that had begun."""
        return not self.aborted and (self._finish_reason is not None or (self._closed and self._written))

    @property
    def aborted(self) -> bool:
        """Whether the server says that it gave up."""
        return self._finish_reason in _ABORTED

    @property
    def finish_reason(self) -> FinishReason:
        """Why the answer ended, once it has; words that we do not know mean that it stopped by itself."""
        return _FINISH_REASONS.get(self._finish_reason or "", FinishReason.STOP)

    @property
    def usage(self) -> Usage:
        """Tokens, as the server counts them."""
        return Usage(self._usage.prompt_tokens, self._usage.completion_tokens, self._cached)
