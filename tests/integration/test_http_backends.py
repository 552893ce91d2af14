"""The server over HTTP as a process, with a scripted model server behind it: streams, leaving, stopping."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import openai
import pytest

from tests.fakes.openai_server import Cut, OpenAIServer, Script, Send, Status, Wait, answer, serving, sse, token
from tests.integration.conftest import PATIENCE_S
from tests.integration.http_process import HttpProcess, http_running

ASKED: Any = [{"role": "user", "content": "How thick are the walls of the penstock?"}]
NO_CACHE: Any = {"headrace": {"cache": False}}
STREAMS = 50


@asynccontextmanager
async def _serving(folder: Path, *scripts: Script, **server: Any) -> AsyncIterator[tuple[HttpProcess, OpenAIServer]]:
    async with serving(*scripts) as model:
        backend = {
            "name": "llm",
            "kind": "openai",
            "base_url": model.base_url,
            "model": "served",
            "retries": 0,
            "max_concurrent": 2 * STREAMS,
        }
        with http_running(folder, [backend], **server) as http:
            await http.fill()
            yield http, model


async def test_http_hands_on_what_a_model_says(tmp_path: Path) -> None:
    """Text, thoughts and calls of functions go through; tools and turns reach the model's server."""
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "gate", "arguments": '{"n":7}'}}
    calling = sse(
        {"choices": [{"index": 0, "delta": {"reasoning_content": "hm"}}]},
        {"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]},
        {"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]},
        "[DONE]",
    )
    tools: Any = [{"type": "function", "function": {"name": "gate", "parameters": {"type": "object"}}}]
    async with _serving(tmp_path, [Send(calling)], answer("It is ", "open.")) as (http, model), http.client() as client:
        first = await client.chat.completions.create(model="docs@llm", messages=ASKED, tools=tools, extra_body=NO_CACHE)
        message: Any = first.choices[0].message
        result = {"role": "tool", "tool_call_id": "c1", "content": "gate 7: OPEN-9"}
        messages = [*ASKED, message.model_dump(exclude_none=True), result]
        second = await client.chat.completions.create(
            model="docs@llm", messages=messages, tools=tools, extra_body=NO_CACHE
        )
        sent = model.exchanges
    assert (first.choices[0].finish_reason, message.reasoning_content) == ("tool_calls", "hm")
    assert [(each.id, each.function.arguments) for each in message.tool_calls] == [("c1", '{"n":7}')]
    assert second.choices[0].message.content == "It is open."
    assert sent[0].body["tools"] == tools
    assert "OPEN-9" in str(sent[1].body["messages"])


async def test_http_failures_of_the_model_have_statuses(tmp_path: Path) -> None:
    """Before the first piece a failure is a status, and after it an error within the stream (GEN-10)."""
    cut: Script = [Send(sse(token("The walls "))), Cut()]
    async with _serving(tmp_path, [Status(500)], cut) as (http, model), http.client() as client:
        asking: Any = {"model": "docs@llm", "messages": ASKED, "stream": True, "extra_body": NO_CACHE}
        with pytest.raises(openai.InternalServerError) as refused:
            await client.chat.completions.create(**asking)
        stream: Any = await client.chat.completions.create(**asking)
        said = []
        with pytest.raises(openai.APIError) as broken:
            said += [chunk.choices[0].delta.content async for chunk in stream]
    assert refused.value.status_code == 503
    assert broken.value.code == "BACKEND_CUT"
    assert len(model.exchanges) == 2


async def test_http_caller_that_leaves_frees_the_model(tmp_path: Path) -> None:
    """A caller who closes his stream closes the one to the model's server, each time (GEN-11)."""
    held: Script = [Send(sse(token("The walls "))), Wait(asyncio.Event())]
    async with _serving(tmp_path, held) as (http, model), http.client() as client:
        for number in range(5):
            stream: Any = await client.chat.completions.create(
                model="docs@llm", messages=ASKED, stream=True, extra_body=NO_CACHE
            )
            assert (await anext(aiter(stream))).choices[0].delta.role == "assistant"
            await stream.close()
            exchange = await model.exchange(number)
            await asyncio.wait_for(exchange.client_left.wait(), PATIENCE_S)
        assert await asyncio.to_thread(http.server.stop) == 0


async def test_http_streams_end_when_the_server_stops(tmp_path: Path) -> None:
    """After SIGTERM open streams run to their end, new requests are refused, and the process goes with 0 (GRP-05)."""
    go = asyncio.Event()
    held: Script = [Send(sse(token("The walls "))), Wait(go), *answer("are thick.")]
    async with _serving(tmp_path, held, grace_s=PATIENCE_S) as (http, model), http.client() as client:
        streams = [await _opened(client) for _ in range(STREAMS)]
        http.server.process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(http.server.wait_for, "stopping")
        with pytest.raises(openai.InternalServerError) as refused:
            await client.chat.completions.create(model="docs@llm", messages=ASKED, extra_body=NO_CACHE)
        go.set()
        ends = [[chunk async for chunk in stream][-1].choices[0].finish_reason for stream in streams]
        assert await asyncio.to_thread(http.server.process.wait, PATIENCE_S) == 0
    assert (refused.value.status_code, refused.value.code) == (503, "SHUTTING_DOWN")
    assert refused.value.response.headers["retry-after"] == "1"
    assert ends == ["stop"] * STREAMS
    assert len(model.exchanges) == STREAMS


async def _opened(client: openai.AsyncOpenAI) -> Any:
    """Returns a stream whose first piece has come."""
    stream: Any = await client.chat.completions.create(
        model="docs@llm", messages=ASKED, stream=True, extra_body=NO_CACHE
    )
    await anext(aiter(stream))
    return stream
