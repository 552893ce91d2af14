"""An answer in OpenAI's shape: as one document, or as chunks; what is ours stands under `headrace`."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from indexers.types import Epoch
from retrieval.clock import Ledger
from retrieval.server.convert.conversations import conversation_to_pb
from retrieval.server.convert.ledgers import ledger_to_pb
from retrieval.server.convert.plain import plain
from retrieval.server.convert.reuse import reuse_to_pb
from retrieval.server.http.reply import compact
from retrieval.speech import Delta, FinishReason, ToolCall, Usage
from retrieval.types import AnswerCitation, Completed, Context, Retrieved

NOTHING = Retrieved("", (), Context("", 0, 0, ""), Ledger((), 0), Epoch(0, 0))  # before anything was retrieved
DONE = b"data: [DONE]\n\n"
_FINISHES: Mapping[FinishReason, str] = {
    FinishReason.STOP: "stop",
    FinishReason.LENGTH: "length",
    FinishReason.NO_EVIDENCE: "stop",
    FinishReason.CONTENT_FILTER: "content_filter",
    FinishReason.TOOL_CALLS: "tool_calls",
    FinishReason.OTHER: "stop",
}


class Chunks:
    """Writes the chunks of one answer as events."""

    def __init__(self, request_id: str, model: str) -> None:
        head = {"id": _id(request_id), "object": "chat.completion.chunk", "created": int(time.time()), "model": model}
        self._head = f"data: {compact(head)[:-1]}"
        self._before = f'{self._head},"choices":[{{"index":0,"delta":'
        self._started = False

    def delta(self, delta: Delta) -> bytes:
        """Returns a piece of the answer; the first one says who speaks."""
        text = compact(_delta(delta))
        start = (
            "" if self._started else f'{self._before}{{"role":"assistant","content":""}},"finish_reason":null}}]}}\n\n'
        )
        self._started = True
        return f'{start}{self._before}{text},"finish_reason":null}}]}}\n\n'.encode()

    def end(self, completed: Completed, ours: Mapping[str, object]) -> bytes:
        """Returns the chunk that ends the answer, with what is ours."""
        finish = compact(_FINISHES[completed.finish_reason])
        role = {} if self._started else {"role": "assistant", "content": ""}
        return f'{self._before}{compact(role)},"finish_reason":{finish}}}],"headrace":{compact(ours)}}}\n\n'.encode()

    def usage(self, usage: Usage) -> bytes:
        """Returns the chunk that tells the usage."""
        return f'{self._head},"choices":[],"usage":{compact(usage_of(usage))}}}\n\n'.encode()


@dataclass(slots=True)
class Whole:
    """An answer that is put together to be sent as one document."""

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: dict[int, ToolCall] = field(default_factory=dict)

    def add(self, delta: Delta) -> None:
        """Appends a piece."""
        self.texts.append(delta.text)
        self.thoughts.append(delta.reasoning)
        for piece in delta.tool_calls:
            call = self.calls.get(piece.index, ToolCall(piece.index))
            self.calls[piece.index] = ToolCall(
                piece.index, call.id or piece.id, call.name or piece.name, call.arguments + piece.arguments
            )

    def document(self, request_id: str, model: str, completed: Completed, ours: Mapping[str, object]) -> object:
        """Returns the completion."""
        choice = {
            "index": 0,
            "message": self._message(),
            "logprobs": None,
            "finish_reason": _FINISHES[completed.finish_reason],
        }
        return {
            "id": _id(request_id),
            "object": "chat.completion",
            "created": int(time.time()),
            "model": model,
            "choices": [choice],
            "usage": usage_of(completed.usage),
            "headrace": ours,
        }

    def _message(self) -> dict[str, object]:
        text = "".join(self.texts)
        message: dict[str, object] = {"role": "assistant", "content": text, "refusal": None}
        if thoughts := "".join(self.thoughts):
            message["reasoning_content"] = thoughts
        if self.calls:
            message["content"] = text or None
            calls = [self.calls[index] for index in sorted(self.calls)]
            message["tool_calls"] = [_without_index(call) for call in _calls(calls)]
        return message


def usage_of(usage: Usage) -> dict[str, object]:
    """Returns the usage as OpenAI's API tells it."""
    return {
        "prompt_tokens": usage.prompt_tokens,
        "completion_tokens": usage.output_tokens,
        "total_tokens": usage.prompt_tokens + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cached_prompt_tokens},
    }


def extension(request_id: str, completed: Completed, retrieved: Retrieved) -> dict[str, object]:
    """Returns what is ours: why it ended, who answered, what it cites, the ledger, what caches and history did."""
    conversation = conversation_to_pb(retrieved.conversation)
    return {
        "request_id": request_id,
        "finish_reason": completed.finish_reason.value,
        "backend": completed.backend,
        "model": completed.model,
        "citations": list(_citations(completed.citations, retrieved.context)),
        "unknown_citations": completed.unknown_citations,
        "ledger": plain(ledger_to_pb(completed.ledger)),
        "reuse": plain(reuse_to_pb(completed.reuse)),
        "conversation": conversation and plain(conversation),
    }


def _citations(citations: Iterable[AnswerCitation], context: Context) -> Iterable[dict[str, object]]:
    sources = {source.number: source.passage for source in context.citations}
    for citation in citations:
        said: dict[str, object] = {"number": citation.number, "document_id": citation.document_id}
        if (passage := sources.get(citation.number)) is not None:
            said |= {"title": passage.title, "source_uri": passage.source_uri}
            said |= {"start": passage.start, "end": passage.end, "page": passage.page}
        yield said | {"answer_start": citation.start, "answer_end": citation.end}


def _delta(delta: Delta) -> dict[str, object]:
    said: dict[str, object] = {}
    if delta.text:
        said["content"] = delta.text
    if delta.reasoning:
        said["reasoning_content"] = delta.reasoning
    if delta.tool_calls:
        said["tool_calls"] = list(_calls(delta.tool_calls))
    return said


def _calls(calls: Iterable[ToolCall]) -> Iterable[dict[str, object]]:
    for call in calls:
        function: dict[str, object] = {"arguments": call.arguments}
        said: dict[str, object] = {"index": call.index, "function": function}
        if call.name:
            function["name"] = call.name
        if call.id:
            said |= {"id": call.id, "type": "function"}
        yield said


def _without_index(call: dict[str, object]) -> dict[str, object]:
    return {"type": "function"} | {name: value for name, value in call.items() if name != "index"}


def _id(request_id: str) -> str:
    return f"chatcmpl-{request_id}"
