"""Reads the bytes of one streamed chat completion: what they add to the answer, and whether it is whole.

An answer is whole when the model gave a reason to stop that is none to give up, or when the server said `[DONE]` after
something of it. The end of the stream says nothing: proxies end streams properly whose other side broke off.
"""

from __future__ import annotations

from collections.abc import Iterable

from retrieval.generation.openai_events import CompletionEvent, EventDelta, EventUsage
from retrieval.generation.openai_failures import Failure
from retrieval.generation.sse import EventDecoder, ServerEvent
from retrieval.types import BackendEnd, Delta, FinishReason, ToolCall, Usage

_DONE = "[DONE]"
_FINISH_REASONS = {
    "length": FinishReason.LENGTH,
    "content_filter": FinishReason.CONTENT_FILTER,
    "tool_calls": FinishReason.TOOL_CALLS,
    "function_call": FinishReason.TOOL_CALLS,
}
_ABORTED = frozenset({"abort", "aborted", "cancelled", "error", "insufficient_system_resource"})


class CompletionReader:
    """Reads one answer. After a `failure` nothing more is to be read."""

    def __init__(self, model: str) -> None:
        self.failure: Failure | None = None
        self.closed = False  # whether the server said that nothing more comes
        self.received_chars = 0  # of text
        self._model = model
        self._decoder = EventDecoder()
        self._finish_reason = ""
        self._begun = False
        self._usage = EventUsage()
        self._cached = 0

    def feed(self, chunk: bytes) -> Delta | None:
        """Returns what the bytes add to the answer, as one piece; None when they add nothing."""
        return self._read(self._decoder.feed(chunk))

    def finish(self) -> Delta | None:
        """Returns what the last line adds, when the stream ends without ending it."""
        return self._read(self._decoder.finish())

    @property
    def finished(self) -> bool:
        """Whether the answer is whole."""
        if self._finish_reason:
            return self._finish_reason not in _ABORTED
        return self.closed and self._begun

    @property
    def end(self) -> BackendEnd:
        """How the answer ended, once it is whole; words that we do not know mean that it stopped by itself."""
        usage = Usage(self._usage.prompt_tokens, self._usage.completion_tokens, self._cached)
        return BackendEnd(_FINISH_REASONS.get(self._finish_reason, FinishReason.STOP), usage, self._model)

    def _read(self, events: Iterable[ServerEvent]) -> Delta | None:
        gathered = _Gathered()
        try:
            for event in events:
                if event.data.startswith(_DONE):
                    self.closed = True
                    break
                self._take(event, gathered)
        except ValueError:
            # Raised by the decoder and by the model of an event; their text quotes the server.
            self.failure = Failure("it sent something else than a stream of chat completion events", transient=False)
        except Failure as failure:
            self.failure = failure
        self.received_chars += len(gathered.text)
        self._begun |= bool(gathered.text or gathered.calls)
        if gathered.text or gathered.reasoning or gathered.calls:
            return Delta(gathered.text, gathered.reasoning, gathered.calls)
        return None

    def _take(self, event: ServerEvent, gathered: _Gathered) -> None:
        part = CompletionEvent.model_validate_json(event.data)
        if part.error or event.name == "error":
            raise Failure("it reported an error in its stream", transient=True)
        if part.model:
            self._model = part.model
        if part.usage is not None or part.timings is not None:
            self._count(part)
        choice = part.choice
        if choice is None:
            return
        if choice.finish_reason:
            self._finish_reason = choice.finish_reason
        if choice.delta is not None:
            gathered.add(choice.delta)
        if self._finish_reason in _ABORTED:
            raise Failure("it gave the answer up", transient=True)

    def _count(self, part: CompletionEvent) -> None:
        """Reads usage, which may come with any event, or after the last."""
        if part.usage is not None:
            self._usage = part.usage
            details = part.usage.prompt_tokens_details
            self._cached = max(self._cached, details.cached_tokens if details else 0)
        if part.timings is not None:
            self._cached = max(self._cached, part.timings.cache_n)


class _Gathered:
    """What the events of one chunk add."""

    __slots__ = ("calls", "reasoning", "text")

    def __init__(self) -> None:
        self.text = ""
        self.reasoning = ""
        self.calls: tuple[ToolCall, ...] = ()

    def add(self, delta: EventDelta) -> None:
        if delta.content:
            self.text += delta.content
        if thought := delta.reasoning_content or delta.reasoning:
            self.reasoning += thought
        if delta.tool_calls or delta.function_call:
            self.calls += delta.calls
