"""The OpenAI-compatible backend against a real socket: what comes out of every way in which a stream can end."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest
from structlog.testing import capture_logs

from retrieval.errors import BackendCut, BackendError, BackendTimeout, BackendUnavailable
from retrieval.generation.openai_backend import OpenAIBackend
from retrieval.settings.generation import BackendSettings
from retrieval.types import Arrangement, BackendEnd, Context, Delta, FinishReason, GenerationParams, Prompt, Usage
from tests.fakes.counters import WordCounter
from tests.fakes.openai_server import (
    Cut,
    OpenAIServer,
    Reset,
    Script,
    Send,
    Status,
    Wait,
    answer,
    serving,
    sse,
    token,
)

CONTEXT = Context("[1]\nTurn the key.", 5, 100, "words")
PROMPT = Prompt("Answer.", CONTEXT, "How?", Arrangement.by_relevance(CONTEXT))
SECRET = "sk-secret-of-ours"


def params(seconds: float = 30.0) -> GenerationParams:
    """Allows that much time."""
    return GenerationParams(16, 0.5, time.monotonic_ns() + int(seconds * 1e9))


@asynccontextmanager
async def backend(server: OpenAIServer, **changes: Any) -> AsyncIterator[OpenAIBackend]:
    """Opens a backend on the server, and closes it."""
    fields = {
        "name": "llm",
        "kind": "openai",
        "base_url": server.base_url,
        "model": "asked",
        "api_key": SECRET,
    } | changes
    opened = OpenAIBackend(BackendSettings.model_validate(fields), WordCounter())
    try:
        yield opened
    finally:
        await opened.close()


async def collect(opened: OpenAIBackend, received: list[str], seconds: float = 30.0) -> BackendEnd | None:
    """Streams an answer into `received`; returns how it ended."""
    async with aclosing(opened.stream(PROMPT, params(seconds))) as pieces:
        async for piece in pieces:
            if isinstance(piece, BackendEnd):
                return piece
            received.append(piece.text)
    return None


async def ask(*scripts: Script, **changes: Any) -> tuple[str, BackendEnd]:
    """Plays the scripts to one call; returns text and end."""
    received: list[str] = []
    async with serving(*scripts) as server, backend(server, **changes) as opened:
        end = await collect(opened, received)
    assert end is not None
    return "".join(received), end


async def test_request_carries_messages_limits_and_key() -> None:
    """The server gets the instructions, the sources with the question last, the limits, and the key."""
    async with serving(answer("Hi")) as server, backend(server) as opened:
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
    async with serving(answer("Hi")) as server, backend(server, api_key="") as opened:
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


@pytest.mark.parametrize(
    ("word", "reason"),
    [
        ("stop", FinishReason.STOP),
        ("eos_token", FinishReason.STOP),
        ("length", FinishReason.LENGTH),
        ("content_filter", FinishReason.CONTENT_FILTER),
    ],
)
async def test_finish_reasons_are_translated(word: str, reason: FinishReason) -> None:
    """The server's word becomes ours; a word we do not know is a stop."""
    assert (await ask(answer("Hi", finish_reason=word)))[1].finish_reason is reason


async def test_prompt_tokens_from_llama_cpp_timings() -> None:
    """Cached prompt tokens are read where llama.cpp puts them too."""
    last = {"choices": [{"delta": {}, "finish_reason": "stop"}], "timings": {"cache_n": 6}}
    assert (await ask([Send(sse(token("Hi"), last, "[DONE]"))]))[1].usage.cached_prompt_tokens == 6


async def test_answer_closed_without_reason_is_whole() -> None:
    """`[DONE]` after text ends an answer of a server that gives no finish reason."""
    assert (await ask([Send(sse(token("Hi"), "[DONE]"))]))[1].finish_reason is FinishReason.STOP


async def test_break_after_the_finish_loses_nothing() -> None:
    """An answer whose finish reason has come is whole, even when the connection breaks before usage comes."""
    text, end = await ask([Send(sse(token("Hi", "stop"))), Cut()])
    assert (text, end.usage) == ("Hi", Usage())


@pytest.mark.parametrize(
    "tail",
    [
        [Cut()],
        [],
        [Send(sse({"error": {"message": "secret upstream words", "code": 500}}))],
        [Send(b"event: error\ndata: {}\n\n")],
        [Send(sse({"choices": [{"delta": {}, "finish_reason": "abort"}]}, "[DONE]"))],
        [Send(b"data: {broken\n\n")],
        [Send(b"data: \xff\n\n")],
    ],
)
async def test_stream_that_breaks_after_text_is_cut(tail: list[Any]) -> None:
    """However a stream breaks once text is out, it is an error that counts what came, and never a full answer."""
    received: list[str] = []
    async with (
        serving([Send(sse(token("Turn "), token("the "))), *tail]) as server,
        backend(server, retries=3) as opened,
    ):
        with pytest.raises(BackendCut) as caught:
            await collect(opened, received)
        assert len(server.exchanges) == 1
    assert (received, caught.value.received_chars) == (["Turn ", "the "], 9)
    assert "secret" not in str(caught.value)


async def test_reset_after_text_is_not_sent_again() -> None:
    """GEN-10: after a token is out, a reset connection is one error; nothing is doubled."""
    received: list[str] = []
    seen = asyncio.Event()
    first: Script = [Send(sse(token("Turn "), token("the "))), Wait(seen), Reset()]
    async with serving(first, answer("Turn ", "the ", "key.")) as server, backend(server, retries=3) as opened:
        async with aclosing(opened.stream(PROMPT, params())) as pieces:
            for _ in range(2):
                piece = await anext(pieces)
                assert isinstance(piece, Delta)
                received.append(piece.text)
            seen.set()
            with pytest.raises(BackendCut):
                await anext(pieces)
        assert len(server.exchanges) == 1
    assert received == ["Turn ", "the "]


@pytest.mark.parametrize(
    "first",
    [
        [Reset()],
        [Status(503)],
        [Status(429)],
        [Send(sse({"choices": [{"delta": {"role": "assistant"}}]})), Cut()],
        [Send(sse({"error": {"message": "overloaded"}}))],
        [Send(sse("[DONE]"))],
    ],
)
async def test_failure_before_the_first_token_is_sent_again(first: Script) -> None:
    """GEN-10: while nothing is out, the request is sent again and the answer comes once."""
    text, end = await ask(first, answer("Turn ", "the ", "key."), retries=1)
    assert (text, end.finish_reason) == ("Turn the key.", FinishReason.STOP)


@pytest.mark.parametrize(("script", "requests"), [([Status(503)], 3), ([Status(401)], 1), ([Status(400)], 1)])
async def test_refusals_are_unavailable_without_the_servers_words(script: Script, requests: int) -> None:
    """A refusal names its status and nothing that the server said; only what may pass is tried again."""
    async with serving(script) as server, backend(server, retries=2) as opened:
        with pytest.raises(BackendUnavailable) as caught:
            await collect(opened, [])
        assert len(server.exchanges) == requests
    assert str(script[0].code) in str(caught.value)  # type: ignore[union-attr]
    assert 'refused"' not in str(caught.value)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("status", "reason"),
    [
        (401, "it refused the credentials (status 401)"),
        (403, "it refused the credentials (status 403)"),
        (404, "it knows no such model or address (status 404)"),
    ],
)
async def test_refusals_that_last_are_told_from_an_outage(status: int, reason: str) -> None:
    """The reason says what to mend, and one line in the log names backend and status, without the key."""
    async with serving([Status(status)]) as server, backend(server, retries=2) as opened:
        with capture_logs() as lines, pytest.raises(BackendUnavailable) as caught:
            await collect(opened, [])
    assert caught.value.reason == reason
    assert lines == [{"event": "backend_refused", "log_level": "warning", "backend": "llm", "status": status}]


async def test_reply_that_is_no_stream_is_unavailable() -> None:
    """A server that answers with something else than events has not answered."""
    async with serving([Send(b'{"choices": []}')]) as server, backend(server, retries=0) as opened:
        with pytest.raises(BackendUnavailable):
            await collect(opened, [])


async def test_server_that_is_not_there_is_unavailable() -> None:
    """Nobody listens: unavailable, not a foreign exception."""
    async with serving([]) as server:
        pass
    async with backend(server, retries=0) as opened:
        with pytest.raises(BackendUnavailable):
            await collect(opened, [])


async def test_silence_before_the_first_token_times_out() -> None:
    """A server that sends headers and comments but no token has sent nothing."""
    never = asyncio.Event()
    script: Script = [Send(b": warm\n\n" + sse({"choices": [{"delta": {"role": "assistant"}}]})), Wait(never)]
    async with serving(script) as server, backend(server, first_token_timeout_s=0.05) as opened:
        with pytest.raises(BackendTimeout):
            await collect(opened, [])
        await asyncio.wait_for(server.exchanges[0].client_left.wait(), 1.0)


async def test_silence_between_tokens_times_out() -> None:
    """After the first token the shorter limit holds; thoughts count as tokens, though they are not text."""
    never = asyncio.Event()
    thought = {"choices": [{"delta": {"reasoning_content": "hm"}}]}
    received: list[str] = []
    async with (
        serving([Send(sse(thought, token("Turn "))), Wait(never)]) as server,
        backend(server, first_token_timeout_s=30, token_timeout_s=0.05) as opened,
    ):
        with pytest.raises(BackendTimeout):
            await collect(opened, received)
    assert received == ["Turn "]


async def test_deadline_bounds_the_wait() -> None:
    """The request's own deadline ends the wait, and no retry begins after it."""
    async with serving([Wait(asyncio.Event())]) as server, backend(server, retries=5) as opened:
        with pytest.raises(BackendTimeout):
            await collect(opened, [], seconds=0.05)
        assert len(server.exchanges) <= 1
    async with serving([Status(503)]) as server, backend(server, retries=5) as opened:
        with pytest.raises(BackendError):
            await collect(opened, [], seconds=0.05)
        assert len(server.exchanges) <= 1


async def leave_after_first(opened: OpenAIBackend) -> None:
    """Reads one piece and goes."""
    async with aclosing(opened.stream(PROMPT, params())) as pieces:
        assert isinstance(await anext(pieces), Delta)


async def test_leaving_closes_the_connection_within_a_second() -> None:
    """GEN-11: the server sees each of 50 clients leave after one token; none stays, and the next call is served."""
    never = asyncio.Event()
    stuck: Script = [Send(sse(token("Turn "))), Wait(never)]
    async with serving(*[stuck] * 50, answer("Hi")) as server, backend(server) as opened:
        async with asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(leave_after_first(opened))
        async with asyncio.timeout(1.0):
            for exchange in server.exchanges:
                await exchange.client_left.wait()
                await exchange.ended.wait()
        received: list[str] = []
        assert await collect(opened, received) is not None
        assert (received, server.open_connections) == (["Hi"], 1)


@pytest.mark.parametrize("held", ["<think>", "["])
async def test_cancelling_while_waiting_closes_the_connection(held: str, caplog: pytest.LogCaptureFixture) -> None:
    """GEN-12: a task cancelled while it waits for the next piece leaves no noise in the log and no connection."""
    caplog.set_level(logging.DEBUG, logger="asyncio")
    never = asyncio.Event()
    async with serving([Send(sse(token(held))), Wait(never)]) as server, backend(server) as opened:
        for number in range(20):
            received: list[str] = []
            task = asyncio.create_task(collect(opened, received))
            exchange = await server.exchange(number)
            while not received:
                await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            async with asyncio.timeout(1.0):
                await exchange.client_left.wait()
    gc.collect()
    noise = [record.getMessage() for record in caplog.records]
    assert not [text for text in noise if "GeneratorExit" in text or "never retrieved" in text]


async def test_connection_is_used_again_after_a_whole_answer() -> None:
    """A finished answer gives its connection back, so the next request need not connect."""
    async with serving(answer("Hi")) as server, backend(server) as opened:
        await collect(opened, [])
        await collect(opened, [])
        assert (len(server.exchanges), server.open_connections) == (2, 1)
