"""The OpenAI-compatible backend on a real socket: what goes out, and what comes of streams that end as they should."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from retrieval.generation.openai_backend import OpenAIBackend
from retrieval.generation.openai_request import request_body
from retrieval.settings.generation import BackendSettings
from retrieval.speech import BackendEnd, Delta, FinishReason, ToolCall, Tools, Usage
from tests.fakes.counters import WordCounter
from tests.fakes.openai_calls import PROMPT, SECRET, ask, backend, collect, leaving_nothing, params, text_of
from tests.fakes.openai_server import Cut, HangUp, Raw, Script, Send, Wait, answer, serving, sse, token


async def test_request_carries_messages_limits_and_key() -> None:
    """The server gets the instructions, the sources with the question last, the limits, and the key."""
    async with serving(answer("Hi")) as server, backend(server.base_url) as opened:
        await collect(opened, [])
        sent = server.exchanges[0]
    assert sent.path == "/v1/chat/completions"
    assert sent.headers["authorization"] == f"Bearer {SECRET}"
    assert sent.body == {
        "model": "asked",
        "messages": [
            {"role": "system", "content": "Answer."},
            {"role": "user", "content": "Sources:\n\n[1]\nTurn the key.\n\nQuestion: How?"},
        ],
        "max_tokens": 16,
        "temperature": 0.5,
        "stream": True,
        "stream_options": {"include_usage": True},
    }


async def test_environment_of_another_server_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keys and organisations that the environment holds for OpenAI do not go to whatever server is configured."""
    for name in ("OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.setenv(name, "from-the-environment")
    async with serving(answer("Hi")) as server, backend(server.base_url, api_key="") as opened:
        await collect(opened, [])
        assert "from-the-environment" not in str(server.exchanges[0].headers)


async def test_events_without_choices_are_fine() -> None:
    """GEN-02: a role alone, an empty delta and a usage event without choices make text, finish and usage."""
    events: list[dict[str, Any] | str] = [
        {"choices": [{"delta": {"role": "assistant"}}]},
        {"choices": [{"delta": {"content": "Hi"}}]},
        {"choices": [{"delta": {}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 1}},
        "[DONE]",
    ]
    assert await ask([Send(sse(*events))]) == ("Hi", BackendEnd(FinishReason.STOP, Usage(5, 1, 0), "asked"))


async def test_last_text_may_come_with_finish_and_usage() -> None:
    """GEN-14: text in the event that carries finish reason and usage is not lost."""
    last = {
        "model": "served",
        "choices": [{"delta": {"content": "b"}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 1}},
    }
    end = BackendEnd(FinishReason.LENGTH, Usage(3, 2, 1), "served")
    assert await ask([Send(sse(token("a"), last, "[DONE]"))]) == ("ab", end)


@pytest.mark.parametrize("size", [0, 1, 2, 3, 7])
@pytest.mark.parametrize(
    "body",
    [
        'data:{"choices":[{"delta":{"content":"A"},"finish_reason":"stop"}]}\r\n\r\ndata:[DONE]\r\n\r\n',
        '\ufeffdata: {"choices":[{"delta":{"content":"A"},\ndata: "finish_reason":"stop"}]}\n\ndata: [DONE]',
        'data: {"choices":[{"delta":{"content":"A"},"finish_reason":"stop"}]}\r\rdata: [DONE]\r\r',
        'event: ping\n\nid: 1\n\n: warm\n\ndata: {"choices":[{"delta":{"content":"A"},"finish_reason":"stop"}]}\n\n',
    ],
)
async def test_every_dialect_of_events_is_read(body: str, size: int) -> None:
    """GEN-07: whatever the line ends and the cuts, the text is A and it stopped by itself."""
    text, end = await ask([Send(body.encode(), size)])
    assert (text, end.finish_reason) == ("A", FinishReason.STOP)


async def test_line_separators_inside_text_are_text() -> None:
    """GEN-07: U+2028 and U+0085 end no line of the stream."""
    raw = 'data: {"choices":[{"delta":{"content":"a\u2028b\u0085c"},"finish_reason":"stop"}]}\n\n'
    assert (await ask([Send(raw.encode())]))[0] == "a\u2028b\u0085c"


async def test_prompt_tokens_from_llama_cpp_timings() -> None:
    """Cached prompt tokens are read where llama.cpp puts them too."""
    last = {"choices": [{"delta": {}, "finish_reason": "stop"}], "timings": {"cache_n": 6}}
    assert (await ask([Send(sse(token("Hi"), last, "[DONE]"))]))[1].usage.cached_prompt_tokens == 6


async def test_answer_closed_without_reason_is_whole() -> None:
    """`[DONE]` after text ends an answer of a server that gives no finish reason; why it ended is not known."""
    assert (await ask([Send(sse(token("Hi"), "[DONE]"))]))[1].finish_reason is FinishReason.OTHER


async def test_break_after_the_finish_loses_nothing() -> None:
    """An answer whose finish reason has come is whole, even when the connection breaks before usage comes."""
    text, end = await ask([Send(sse(token("Hi", "stop"))), Cut()])
    assert (text, end.usage) == ("Hi", Usage())


async def test_thoughts_stay_apart_from_text() -> None:
    """Reasoning of either spelling is given as such, in its order, and never as text."""
    events: list[dict[str, Any] | str] = [
        {"choices": [{"delta": {"role": "assistant", "content": None, "reasoning_content": "Hm"}}]},
        {"choices": [{"delta": {"content": "", "reasoning": ", so"}}]},
        token("Turn"),
        token("", "stop"),
    ]
    received: list[Delta] = []
    async with serving([Send(sse(*events, "[DONE]"))]) as server, backend(server.base_url) as opened:
        assert await collect(opened, received) is not None
    assert ("".join(piece.reasoning for piece in received), text_of(received)) == ("Hm, so", "Turn")


async def test_tools_go_out_and_their_calls_come_back_as_they_are() -> None:
    """Tools and choice are sent as the app gave them, and the pieces of calls are handed on by index."""
    tools = Tools('[{"type":"function","function":{"name":"look_up"}}]', '{"type":"function"}')
    first = {"index": 0, "id": "c1", "type": "function", "function": {"name": "look_up", "arguments": ""}}
    calls = [[first], [{"index": 0, "function": {"arguments": '{"q":'}}], [{"index": 1, "id": "c2", "function": None}]]
    events = [{"choices": [{"delta": {"tool_calls": pieces}}]} for pieces in calls]
    script = [Send(sse(*events, token("", "tool_calls"), "[DONE]"))]
    received: list[Delta] = []
    async with serving(script) as server, backend(server.base_url) as opened:
        end = await collect(opened, received, prompt=replace(PROMPT, tools=tools))
        sent = server.exchanges[0].body
    assert end is not None
    assert end.finish_reason is FinishReason.TOOL_CALLS
    assert [call for piece in received for call in piece.tool_calls] == [
        ToolCall(0, "c1", "look_up", ""),
        ToolCall(0, "", "", '{"q":'),
        ToolCall(1, "c2"),
    ]
    assert (sent["tools"][0]["function"], sent["tool_choice"]) == ({"name": "look_up"}, {"type": "function"})


async def test_older_forms_of_calls_are_read() -> None:
    """Whole calls without numbers are numbered by their place, and the older single call is the first."""
    whole = [{"id": "a", "function": {"name": "f", "arguments": "{}"}}, {"id": "b", "function": {"name": "g"}}]
    events: list[dict[str, Any] | str] = [
        {"choices": [{"delta": {"tool_calls": whole}}]},
        {"choices": [{"delta": {"function_call": {"name": "h", "arguments": "{}"}}, "finish_reason": "function_call"}]},
    ]
    received: list[Delta] = []
    async with serving([Send(sse(*events))]) as server, backend(server.base_url) as opened:
        await collect(opened, received)
    calls = [call for piece in received for call in piece.tool_calls]
    assert calls == [ToolCall(0, "a", "f", "{}"), ToolCall(1, "b", "g"), ToolCall(0, "", "h", "{}")]


async def test_fields_that_are_null_are_absent() -> None:
    """Servers write null where they have nothing to say."""
    nothing = {"index": None, "delta": {"content": None, "tool_calls": None, "reasoning": None}, "finish_reason": None}
    events: list[dict[str, Any] | str] = [
        {"model": None, "choices": [nothing], "usage": None, "timings": None, "error": None},
        token("Hi"),
        {"choices": None, "usage": {"prompt_tokens": 2, "completion_tokens": None, "prompt_tokens_details": None}},
        token("", "stop"),
    ]
    assert await ask([Send(sse(*events, "[DONE]"))]) == ("Hi", BackendEnd(FinishReason.STOP, Usage(2), "served"))


async def test_pieces_that_arrive_together_go_out_as_one() -> None:
    """What was sent in one write is one piece; a piece without anything in it is none."""
    received: list[Delta] = []
    script = [Send(sse(token(""), token("Turn "), token("the "))), Send(sse(token(""))), *answer("key.")]
    async with serving(script) as server, backend(server.base_url) as opened:
        await collect(opened, received)
    assert text_of(received) == "Turn the key."
    assert all(piece.text for piece in received)
    assert len(received) <= 2


async def test_bytes_of_a_character_may_come_apart() -> None:
    """A character that is cut into single bytes on the wire comes whole."""
    raw = 'data: {"choices":[{"delta":{"content":"水 🌊"},"finish_reason":"stop"}]}\n\n'.encode()
    assert (await ask([Send(raw, 1)]))[0] == "水 🌊"


async def test_stream_may_end_with_its_connection() -> None:
    """A server that neither chunks nor counts its body, and names no type, is read up to the model's word."""
    raw = b"HTTP/1.1 200 OK\r\n\r\n" + sse(token("Hi"), token("", "stop"))
    assert await ask([Raw(raw)]) == ("Hi", BackendEnd(FinishReason.STOP, Usage(), "served"))


def test_affinity_goes_to_who_documents_it() -> None:
    """The cache key is a digest, and only there when it is asked for."""
    plain = json.loads(request_body("m", PROMPT, params(), openai=False))
    assert ("max_tokens" in plain, "max_completion_tokens" in plain) == (True, False)
    with_key = json.loads(request_body("m", PROMPT, params(affinity="session of Ann"), openai=True))
    assert len(with_key["prompt_cache_key"]) == 32
    assert "Ann" not in str(with_key)
    for asked in (params(affinity="session of Ann"), params()):
        assert "prompt_cache_key" not in json.loads(request_body("m", PROMPT, asked, openai=False))
    assert "prompt_cache_key" not in json.loads(request_body("m", PROMPT, params(), openai=True))


def test_request_is_the_same_for_the_same_prompt_and_always_text() -> None:
    """Bytes do not change from one request to the next, and half of a surrogate pair does no harm."""
    odd = replace(PROMPT, question="水 \ud800?")
    assert request_body("m", odd, params(), openai=False) == request_body("m", odd, params(), openai=False)
    assert "水 ??" in request_body("m", odd, params(), openai=False).decode()


async def test_address_of_a_replica_takes_the_place_of_the_settings_own() -> None:
    """A backend opened for another server asks that one, and keeps a query that its address has."""
    async with serving(answer("Hi")) as server:
        settings = BackendSettings(name="llm", kind="openai", base_url="http://127.0.0.1:1/v1", model="asked")
        opened = OpenAIBackend(settings, WordCounter(), server.base_url + "/?version=2")
        assert await collect(opened, []) is not None
        await opened.close()
        assert server.exchanges[0].path == "/v1/chat/completions?version=2"


async def test_connection_is_used_again_after_a_whole_answer() -> None:
    """A finished answer gives its connection back, so the next request need not connect."""
    async with serving(answer("Hi")) as server, leaving_nothing(server), backend(server.base_url) as opened:
        await collect(opened, [])
        await collect(opened, [])
        assert (len(server.exchanges), server.connections) == (2, 1)


async def test_connection_that_the_server_closed_meanwhile_is_not_used() -> None:
    """A server that closes after its answer costs the next request a new connection, and nothing else."""
    once = [*answer("Hi"), HangUp()]
    async with serving(once) as server, leaving_nothing(server), backend(server.base_url) as opened:
        for number in range(1, 4):
            assert await collect(opened, []) is not None
            await server.empty.wait()
            assert server.connections == number


async def test_as_many_answers_as_allowed_stream_at_once_and_their_connections_stay() -> None:
    """The client has no limit of its own below the settings' one, and keeps all connections for the next requests."""
    go_on = asyncio.Event()
    stuck: Script = [Send(sse(token("Turn "))), Wait(go_on), *answer("the key.")]
    async with serving(stuck) as server, backend(server.base_url, max_concurrent=150) as opened:
        for _ in range(2):
            go_on.clear()
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(collect(opened, [])) for _ in range(150)]
                await server.exchange(len(tasks) - 1)
                go_on.set()
            assert all(task.result() for task in tasks)
            server.exchanges.clear()
        assert server.connections == 150
