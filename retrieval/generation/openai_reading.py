"""Reads the bytes of one streamed chat completion: what they add to the answer, and whether it is whole.

An answer is whole when the model gave a reason to stop that is none to give up, or when the server said `[DONE]` after
something of it. The end of the stream says nothing: proxies end streams properly whose other side broke off.
"""

from __future__ import annotations

from collections.abc import Iterable

from retrieval.generation.openai_events import CompletionEvent, EventDelta, read_event
from retrieval.generation.openai_failures import Failure
from retrieval.generation.openai_finishes import Finish
from retrieval.generation.openai_usage import EventUsage
from retrieval.generation.sse import EventDecoder, ServerEvent
from retrieval.speech import BackendEnd, Delta, ToolCall, Usage

_DONE = "[DONE]"


class CompletionReader:
    """Reads one answer. After a `failure` nothing more is to be read."""

    def __init__(self, model: str, most_chars: int, most_tokens: int) -> None:
        """Takes `most_chars` of text, thoughts and calls together, and believes in no more than `most_tokens`."""
        self.failure: Failure | None = None
        self.closed = False  # whether the server said that nothing more comes
        self.received_chars = 0  # of text
        self._model = model
        self._left_chars = most_chars
        self._most_tokens = most_tokens
        self._decoder = EventDecoder()
        self._finish = Finish()
        self._begun = False
        self._called = False
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
        if self._finish.aborted or self._left_chars < 0:
            return False
        return self._finish.given or (self.closed and self._begun)

    @property
    def end(self) -> BackendEnd:
        """How the answer ended, once it is whole; a count that cannot be is as one that was not told."""
        counts = (self._usage.prompt_tokens, self._usage.completion_tokens, self._cached)
        usage = Usage(*(count if count <= self._most_tokens else 0 for count in counts))
        return BackendEnd(self._finish.reason(called=self._called), usage, self._model)

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
        self._called |= bool(gathered.calls)
        if gathered.text or gathered.reasoning or gathered.calls:
            return Delta(gathered.text, gathered.reasoning, tuple(gathered.calls))
        return None

    def _take(self, event: ServerEvent, gathered: _Gathered) -> None:
        part = read_event(event.data)
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
            self._finish.take(choice.finish_reason)
        if choice.delta is not None:
            self._left_chars -= gathered.add(choice.delta)
        if self._finish.aborted:
            raise Failure("it gave the answer up", transient=True)
        if self._left_chars < 0:
            raise Failure("it sent far more than it was asked for", transient=False)

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
        self.calls: list[ToolCall] = []

    def add(self, delta: EventDelta) -> int:
        """Adds a delta; returns its size in characters."""
        size = 0
        if delta.content:
            self.text += (text := delta.text)
            size += len(text)
        if thought := delta.thought:
            self.reasoning += thought
            size += len(thought)
        if delta.tool_calls or delta.function_call:
            calls = delta.calls
            self.calls += calls
            size += sum(call.chars for call in calls)
        return size
