"""What is read of a streamed completion depends on its bytes alone, and a part of it is never an answer too early."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from retrieval.generation.openai_reading import CompletionReader
from retrieval.speech import BackendEnd

Read = tuple[str, str, bool, BackendEnd]

_TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
_DELTA = st.fixed_dictionaries(
    {}, optional={"content": _TEXT, "reasoning_content": _TEXT, "role": st.just("assistant")}
)
_NOISE = st.sampled_from([": ping", "id: 7", "event: ping", "retry: 3", ""])
_LINE_END = st.sampled_from(["\n", "\r\n", "\r"])


@st.composite
def streams(draw: st.DrawFn) -> tuple[bytes, int, str]:
    """Draws a whole stream, from which byte on it is whole, and its text."""
    end = draw(_LINE_END)
    deltas: list[dict[str, Any]] = draw(st.lists(_DELTA, max_size=6))
    last = draw(_DELTA)
    lines: list[str] = []
    for delta in deltas:
        lines += [draw(_NOISE), "", _event({"delta": delta}), ""]
    before = "".join(line + end for line in lines)
    final = _event({"delta": last, "finish_reason": "stop"})
    usage = 'data: {"choices": [], "usage": {"prompt_tokens": 3}}'
    rest = draw(st.sampled_from([[], [usage, ""], [usage, "", "data: [DONE]", ""], ["data: [DONE]", ""]]))
    stream = before + final + "".join(end + line for line in ["", *rest])
    text = "".join(delta.get("content", "") for delta in [*deltas, last])
    return stream.encode(), len((before + final).encode()), text


def _event(choice: dict[str, Any]) -> str:
    return "data: " + json.dumps({"model": "m", "choices": [choice]}, ensure_ascii=False)


def _read(chunks: list[bytes]) -> Read:
    reader = CompletionReader("asked", 10_000, 10_000)
    deltas = [delta for chunk in chunks if (delta := reader.feed(chunk))]
    if reader.failure is None and (rest := reader.finish()):
        deltas.append(rest)
    assert all(delta.text or delta.reasoning or delta.tool_calls for delta in deltas)
    text, reasoning = ("".join(delta.text for delta in deltas), "".join(delta.reasoning for delta in deltas))
    assert reader.received_chars == len(text)
    return text, reasoning, reader.finished, reader.end


@given(streams(), st.lists(st.integers(1, 40), min_size=1, max_size=30))
def test_reading_does_not_depend_on_the_chunks(stream: tuple[bytes, int, str], sizes: list[int]) -> None:
    """However the bytes are cut into chunks, text, thoughts and end are the same."""
    data, _, text = stream
    chunks: list[bytes] = []
    start = 0
    while start < len(data):
        size = sizes[len(chunks) % len(sizes)]
        chunks.append(data[start : start + size])
        start += size
    assert _read(chunks) == _read([data])
    assert _read([data])[0] == text


@given(streams())
def test_no_beginning_is_an_answer_before_the_models_last_word(stream: tuple[bytes, int, str]) -> None:
    """Cut at every byte, the answer is whole exactly from the byte on that completes the finish reason's event."""
    data, whole, text = stream
    for position in range(len(data) + 1):
        read, _, finished, _ = _read([data[:position]])
        assert finished == (position >= whole)
        assert read == text if finished else text.startswith(read)


@given(st.binary(max_size=200), st.integers(1, 40))
def test_garbage_is_never_an_answer(data: bytes, size: int) -> None:
    """Whatever bytes come, they make no whole answer and no foreign error."""
    assert not _read([data[start : start + size] for start in range(0, len(data), size)])[2]
