"""A recorded stream cut at every byte, on a real socket: no position before the model's last word makes an answer."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from retrieval.errors import BackendCut, BackendUnavailable
from retrieval.generation.openai_backend import OpenAIBackend
from retrieval.speech import BackendEnd, Delta, FinishReason
from tests.fakes.openai_calls import backend, collect, leaving_nothing, text_of
from tests.fakes.openai_server import Cut, Raw, Script, Send, serving

_TEXTS = ["Turn ", "the \u6c34", " key", "."]
_LAST = '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}'
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"


def recorded() -> bytes:
    """Returns a stream as vLLM sends it, shortened."""
    events = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}]
    events += [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in _TEXTS]
    parts = [*(json.dumps(event, ensure_ascii=False) for event in events), _LAST]
    parts += ['{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":4}}', "[DONE]"]
    return "".join(f"data: {part}\n\n" for part in parts).encode()


def cut_in_chunks(data: bytes) -> Script:
    """Cuts a body that says where it ends."""
    return [Send(data), Cut()] if data else [Raw(_HEAD.replace(b"\r\n\r\n", b"\r\nContent-Length: 9\r\n\r\n"))]


def cut_with_the_connection(data: bytes) -> Script:
    """Cuts a body that ends where its connection does, so that a cut looks like an end."""
    return [Raw(_HEAD + data)]


def ended_early(data: bytes) -> Script:
    """Ends a body as it should be, as a proxy does whose other side broke off."""
    return [Send(data)] if data else [Send(b"\n")]


@pytest.mark.parametrize(
    ("cut", "line_end_bytes"), [(cut_in_chunks, 2), (cut_with_the_connection, 0), (ended_early, 0)]
)
async def test_stream_cut_at_every_byte_is_never_an_answer_too_early(
    cut: Callable[[bytes], Script], line_end_bytes: int
) -> None:
    """There is an end from the byte on that makes the event with the finish reason whole, and at none before it.

    Where the stream breaks rather than ends, an event without its empty line is not whole.
    """
    stream = recorded()
    whole = stream.index(_LAST.encode()) + len(_LAST) + line_end_bytes
    cuts = [cut(stream[:position]) for position in range(len(stream) + 1)]
    async with serving(*cuts) as server, leaving_nothing(server), backend(server.base_url) as opened:
        outcomes = [await outcome(opened) for _ in cuts]
    assert [position for position, (_, end) in enumerate(outcomes) if end] == list(range(whole, len(stream) + 1))
    for text, end in outcomes:
        assert "".join(_TEXTS).startswith(text)
        assert end is None or (text, end.finish_reason) == ("".join(_TEXTS), FinishReason.STOP)


async def outcome(opened: OpenAIBackend) -> tuple[str, BackendEnd | None]:
    """Returns the text that came, and the end; None when there was an error instead, of the kind that fits."""
    received: list[Delta] = []
    try:
        end = await collect(opened, received)
    except BackendCut:
        assert received
        return text_of(received), None
    except BackendUnavailable:
        assert not received
        return "", None
    assert end is not None
    return text_of(received), end
