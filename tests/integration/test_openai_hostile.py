"""Servers that send what cannot be: counts, numbers of calls, halves of characters, floods, and kinds of contents."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from retrieval.errors import BackendCut, BackendTimeout, BackendUnavailable
from retrieval.speech import Delta, FinishReason, ToolCall, Usage
from tests.fakes.openai_calls import ask, backend, collect, failed, text_of, unavailable
from tests.fakes.openai_server import Flood, Script, Send, answer, serving, sse, token


def choice(**delta: Any) -> dict[str, Any]:
    """Returns an event with one delta."""
    return {"choices": [{"delta": delta}]}


@pytest.mark.parametrize(
    ("reason", "ours"),
    [("eos_token", FinishReason.STOP), ("MAX_TOKENS", FinishReason.LENGTH), ("timeout", FinishReason.OTHER)],
)
async def test_answers_that_end_for_any_reason_are_whole(reason: str, ours: FinishReason) -> None:
    """The text is given, and why it ended; a reason that is not known is not taken for a stop."""
    text, end = await ask(answer("Tighten it", finish_reason=reason))
    assert (text, end.finish_reason) == ("Tighten it", ours)


async def test_plain_stop_after_the_limit_does_not_hide_it() -> None:
    """Some servers end a stream with a stop of its own."""
    assert (await ask([Send(sse(token("Hi", "length"), token("", "stop"), "[DONE]"))]))[
        1
    ].finish_reason.value == "length"


async def test_calls_that_end_with_a_stop_are_calls() -> None:
    """An answer that calls functions is not one that came to its end, whatever the server says."""
    events = [token("Hm"), choice(tool_calls=[{"index": 0, "function": {"name": "f"}}]), token("", "stop")]
    assert (await ask([Send(sse(*events))]))[1].finish_reason is FinishReason.TOOL_CALLS


@pytest.mark.parametrize("count", [-1, 2**33, 10**30, 1e30, "many", "1e999", True, [3], {}, 2_000_000])
async def test_counts_that_cannot_be_are_as_if_not_told(count: object) -> None:
    """An answer is whole whatever its server counts, and what is no count reaches no figures and no prices."""
    usage = {"prompt_tokens": count, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": count}}
    script = [Send(sse(token("Hi", "stop"), {"usage": usage, "timings": {"cache_n": count}}, "[DONE]"))]
    text, end = await ask(script)
    assert (text, end.usage) == ("Hi", Usage(0, 4, 0))


async def test_counts_that_are_no_numbers_in_json_are_read() -> None:
    """A fraction is cut, infinity is none, and accounts that are no objects are not there."""
    raw = b'data: {"usage": {"prompt_tokens": 7.9, "completion_tokens": 1e999, "prompt_tokens_details": 5}}\n\n'
    odd = b'data: {"usage": [1], "timings": "slow"}\n\n'
    assert (await ask([Send(sse(token("Hi", "stop")) + raw + odd)]))[1].usage == Usage(7, 0, 0)


@pytest.mark.parametrize("index", [-3, -1, 2**40])
async def test_number_of_a_call_that_cannot_be_fails_the_attempt(index: int) -> None:
    """Nothing of it is handed on; it is the backend that failed, before its answer or in it."""
    calls = sse(choice(tool_calls=[{"index": index, "id": "c"}]), token("", "tool_calls"))
    error = await unavailable([Send(calls)])
    assert not error.transient
    assert isinstance(await failed([Send(sse(token("Hi"))), Send(calls)]), BackendCut | BackendUnavailable)


@pytest.mark.parametrize(
    "event",
    [
        token("x" * 4000),
        choice(reasoning_content="x" * 4000),
        choice(tool_calls=[{"index": 0, "function": {"arguments": "x" * 4000}}]),
        choice(tool_calls=[{"index": 0}] * 200),
    ],
    ids=["text", "thoughts", "arguments", "calls"],
)
async def test_flood_is_broken_off(event: dict[str, Any]) -> None:
    """What one attempt may send is bounded by what it was asked for, whatever it sends."""
    received: list[Delta] = []
    error = await failed([Flood(sse(event))], received)
    assert isinstance(error, BackendCut)
    assert sum(len(piece.text) + len(piece.reasoning) for piece in received) < 1 << 20
    assert sum(len(piece.tool_calls) for piece in received) < 1 << 16


async def test_flood_after_the_finish_makes_no_answer() -> None:
    """A finish reason before the flood does not make it whole."""
    assert isinstance(await failed([Send(sse(token("Hi", "stop"))), Flood(sse(token("x" * 4000)))]), BackendCut)


@pytest.mark.parametrize(
    "nothing", [b": warm\n\n", sse({"choices": []}), sse(token(""))], ids=["comments", "empty", "role"]
)
async def test_flood_of_nothing_is_no_first_token(nothing: bytes) -> None:
    """Bytes without a token, however fast they come, do not hold up the time for the first token."""
    error = await failed([Flood(nothing * 50)], first_token_timeout_s=0.2)
    assert isinstance(error, BackendTimeout)


async def test_flood_of_nothing_after_the_finish_holds_nothing_up() -> None:
    """The answer is whole, and usage is waited for no longer than it may take."""
    script: Script = [Send(sse(token("Hi", "stop"), "[DONE]")), Flood(b": warm\n\n" * 50)]
    assert (await ask(script))[0] == "Hi"


async def test_content_in_parts_is_text_and_thoughts() -> None:
    """Mistral sends lists of parts: text, thoughts in parts of their own, and others that are none of both."""
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}, {"type": "reference"}]}]
    parts = [{"type": "text", "text": "Tur"}, {"type": "image_url", "image_url": "x"}, {"type": "text", "text": "n"}]
    plain = [{"type": "thinking", "thinking": ", so"}]
    received: list[Delta] = []
    script = [Send(sse(*(choice(content=each) for each in (thinking, plain, parts, [])), token(" it.", "stop")))]
    async with serving(script) as server, backend(server.base_url) as opened:
        assert await collect(opened, received) is not None
    assert (text_of(received), "".join(piece.reasoning for piece in received)) == ("Turn it.", "Hm, so")


async def test_half_of_a_surrogate_pair_is_replaced() -> None:
    """The other half may come with the next event; whole pairs and backslashes stay what they are."""
    raw = (
        rb'data: {"choices":[{"delta":{"content":"a\ud83d \ud83c\udf0a \\ud800\udc00b \"\n"},"finish_reason":"stop"}]}'
    )
    text = 'a\ufffd \U0001f30a \\ud800\ufffdb "\n'
    assert (await ask([Send(raw + b"\n\n")]))[0] == text


async def test_long_piece_comes_in_parts_between_which_others_have_a_turn() -> None:
    """Nobody has to read a megabyte in one go; nothing of it is lost, and calls come once."""
    text = "".join(f"{number} " for number in range(20_000))
    event = choice(content=text, reasoning="Hm", tool_calls=[{"index": 1, "id": "c"}])
    received: list[Delta] = []
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async with serving([Send(sse(event, token("", "stop")))]) as server, backend(server.base_url) as opened:
        task = asyncio.create_task(others())
        await collect(opened, received)
        task.cancel()
    assert (text_of(received), "".join(piece.reasoning for piece in received)) == (text, "Hm")
    assert [call for piece in received for call in piece.tool_calls] == [ToolCall(1, "c")]
    assert max(len(piece.text) for piece in received) <= 8192
    assert turns >= len(received)
