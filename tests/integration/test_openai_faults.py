"""The fault list of the OpenAI-compatible backend against real sockets: each is one typed error that leaves nothing."""

from __future__ import annotations

import asyncio
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme

from retrieval.errors import BackendCut, BackendTimeout, BackendUnavailable, ConfigError
from retrieval.speech import Delta
from tests.fakes.openai_calls import (
    backend,
    collect,
    encrypted,
    failed,
    leaving_nothing,
    never_accepting,
    text_of,
    unavailable,
)
from tests.fakes.openai_server import (
    Cut,
    Flood,
    Head,
    Raw,
    Reset,
    Script,
    Send,
    Wait,
    answer,
    serving,
    sse,
    token,
)

GARBAGE = "it sent something else than a stream of chat completion events"


async def test_server_that_is_not_there_is_unavailable() -> None:
    """Nobody listens: unavailable for a moment, not a foreign exception."""
    async with serving([]) as server:
        pass
    async with leaving_nothing(server), backend(server.base_url) as opened:
        with pytest.raises(BackendUnavailable) as caught:
            await collect(opened, [])
    assert (caught.value.reason, caught.value.transient) == ("the connection to it failed", True)


async def test_server_that_never_accepts_times_out() -> None:
    """A connection that is never served has sent no token."""
    async with serving([]) as server:
        pass
    with never_accepting() as address:
        async with leaving_nothing(server), backend(address, first_token_timeout_s=0.05) as opened:
            with pytest.raises(BackendTimeout) as caught:
                await collect(opened, [])
    assert caught.value.waited_ms >= 50


@pytest.mark.parametrize(
    "script",
    [
        [Reset()],
        [Raw(b"")],
        [Raw(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-str")],
        [Send(sse({"choices": [{"delta": {"role": "assistant"}}]})), Reset()],
        [Send(sse({"choices": [{"delta": {"role": "assistant"}}]})), Cut()],
    ],
)
async def test_connection_that_breaks_before_the_first_token_is_transient(script: Script) -> None:
    """GEN-10: nothing is out, so that whoever asked may ask again; here it is asked once."""
    error = await unavailable(script)
    assert (error.reason, error.transient, error.status) == ("the connection to it failed", True, 0)


@pytest.mark.parametrize(
    ("script", "reason", "transient"),
    [
        (
            [Send(sse({"error": {"message": "upstream words", "code": 500}}))],
            "it reported an error in its stream",
            True,
        ),
        ([Send(b"event: error\ndata: {}\n\n")], "it reported an error in its stream", True),
        ([Send(sse({"choices": [{"delta": {}, "finish_reason": "abort"}]}))], "it gave the answer up", True),
        ([Send(sse("[DONE]"))], "its stream ended before the answer did", True),
        ([Send(b": warm\n\n")], "its stream ended before the answer did", True),
        ([Send(b"data: {upstream words\n\n")], GARBAGE, False),
        ([Send(b"data: \xff\n\n")], GARBAGE, False),
        ([Send(b"data: [1]\n\n")], GARBAGE, False),
        ([Send(bytes(range(256)) * 10 + b"\n")], GARBAGE, False),
        ([Raw(b"upstream words\r\n\r\n")], "the connection to it failed", True),
    ],
)
async def test_stream_that_is_none_is_unavailable(script: Script, reason: str, transient: bool) -> None:
    """Errors inside a 200, giving up, nothing at all, and garbage are told apart; only the first may pass."""
    error = await unavailable(script)
    assert (error.reason, error.transient) == (reason, transient)


@pytest.mark.parametrize(
    "tail",
    [
        [Cut()],
        [Reset()],
        [],
        [Send(sse({"error": {"message": "upstream words", "code": 500}}))],
        [Send(b"event: error\ndata: {}\n\n")],
        [Send(sse({"choices": [{"delta": {}, "finish_reason": "abort"}]}, "[DONE]"))],
        [Send(b"data: {broken\n\n")],
        [Send(b"data: \xff\n\n")],
        [Send(b"\x00" * 3_000_000)],
    ],
)
async def test_stream_that_breaks_after_text_is_cut(tail: list[Any]) -> None:
    """GEN-10: however a stream breaks once text is out, it is an error that counts what came, and never an answer."""
    received: list[Delta] = []
    seen = asyncio.Event()
    script: Script = [Send(sse(token("Turn "), token("the "))), Wait(seen), *tail]

    class Noticed(list[Delta]):
        def append(self, piece: Delta) -> None:
            received.append(piece)
            seen.set()

    error = await failed(script, Noticed())
    assert isinstance(error, BackendCut)
    assert (text_of(received), error.received_chars) == ("Turn the ", 9)


async def test_text_before_a_fault_in_the_same_bytes_is_given() -> None:
    """What stands before the fault goes out first, so that the count of what came is true."""
    received: list[Delta] = []
    error = await failed([Send(sse(token("Turn ")) + b"data: {broken\n\n")], received)
    assert isinstance(error, BackendCut)
    assert (text_of(received), error.received_chars, error.reason) == ("Turn ", 5, GARBAGE)


@pytest.mark.parametrize("began", [{"reasoning": "Hm"}, {"tool_calls": [{"index": 0, "id": "c"}]}])
async def test_whatever_is_out_makes_it_a_cut(began: dict[str, Any]) -> None:
    """Thoughts and tool calls have been shown too, so nothing may be asked again behind them."""
    error = await failed([Send(sse({"choices": [{"delta": began}]})), Cut()])
    assert isinstance(error, BackendCut)
    assert error.received_chars == 0


@pytest.mark.parametrize(
    ("content_type", "what"),
    [
        ("text/html; charset=utf-8", "a web page"),
        ("application/json", "one JSON document"),
        ("application/upstream words", "something else"),
    ],
)
async def test_wrong_content_type_is_unavailable_at_once(content_type: str, what: str) -> None:
    """The head alone is enough to know; the body, which never comes, is not waited for."""
    script: Script = [Head(content_type), Send(b"<html>"), Wait(asyncio.Event())]
    error = await unavailable(script)
    assert error.reason == f"it sent {what} instead of an event stream; check its base_url"
    assert not error.transient


async def test_compressed_stream_is_refused() -> None:
    """It was not asked for, and is no text."""
    script: Script = [Head(headers=(("Content-Encoding", "gzip"),)), Send(b"\x1f\x8b")]
    assert not (await unavailable(script)).transient


async def test_line_of_ten_megabytes_does_not_fill_the_memory() -> None:
    """It is given up at a tenth of that, whatever is still to come."""
    script: Script = [Send(b"data: " + b"x" * 10_000_000, 65_536), Wait(asyncio.Event())]
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        tracemalloc.reset_peak()
        error = await unavailable(script)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (error.reason, error.transient) == (GARBAGE, False)
    assert peak - before < 8_000_000


async def test_server_that_nobody_vouches_for_is_unavailable(tmp_path: Path) -> None:
    """A certificate by somebody else is a failed connection, and no request is sent over it."""
    tls, _ = encrypted(tmp_path)
    trustme.CA().cert_pem.write_to_path(str(tmp_path / "other.pem"))
    error = await unavailable(answer("Hi"), tls=tls, tls_ca_file=str(tmp_path / "other.pem"))
    assert (error.reason, error.transient) == ("the connection to it failed", True)


async def test_server_without_tls_is_unavailable(tmp_path: Path) -> None:
    """It is the same when the other side speaks no TLS."""
    _, changes = encrypted(tmp_path)
    async with plain_server() as address, backend(address, **changes) as opened:
        with pytest.raises(BackendUnavailable, match="the connection to it failed"):
            await collect(opened, [])


@asynccontextmanager
async def plain_server() -> AsyncIterator[str]:
    """Answers every beginning with a refusal in plain text."""

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(refuse, "127.0.0.1", 0)
    async with server:
        yield f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def test_server_that_the_named_authority_vouches_for_answers(tmp_path: Path) -> None:
    """The certificates of `tls_ca_file` are trusted."""
    tls, changes = encrypted(tmp_path)
    received: list[Delta] = []
    async with (
        serving(answer("Hi"), tls=tls) as server,
        leaving_nothing(server),
        backend(server.base_url, **changes) as opened,
    ):
        assert await collect(opened, received) is not None
    assert text_of(received) == "Hi"


async def test_authority_that_cannot_be_read_is_a_fault_of_the_configuration(tmp_path: Path) -> None:
    """It is told when the backend is opened, by the setting's name."""
    with pytest.raises(ConfigError, match="tls_ca_file"):
        async with backend("https://127.0.0.1:1/v1", tls_ca_file=str(tmp_path / "none.pem")):
            pass


@pytest.mark.parametrize("sent", [b"", b": warm\n\n", sse({"choices": [{"delta": {"role": "assistant"}}]})])
async def test_silence_before_the_first_token_times_out(sent: bytes) -> None:
    """Neither a head nor comments nor a role are a token."""
    error = await failed([Send(sent), Wait(asyncio.Event())], first_token_timeout_s=0.05)
    assert isinstance(error, BackendTimeout)
    assert error.waited_ms >= 50


async def test_comments_do_not_put_off_the_first_token() -> None:
    """The wait is bounded in all: a server that pings for ever is as silent as one that does not."""
    error = await failed([Flood(b": ping\n\n")], first_token_timeout_s=0.05)
    assert isinstance(error, BackendTimeout)


@pytest.mark.parametrize("first", [token("Turn "), {"choices": [{"delta": {"reasoning_content": "hm"}}]}])
async def test_silence_between_tokens_is_a_cut(first: dict[str, Any]) -> None:
    """After the first token the shorter limit holds, comments or not; thoughts are tokens too."""
    script: Script = [Send(sse(first)), Send(b": ping\n\n"), Wait(asyncio.Event())]
    error = await failed(script, first_token_timeout_s=30, token_timeout_s=0.05)
    assert isinstance(error, BackendCut)
    assert error.reason.startswith("nothing came for ")


async def test_deadline_bounds_every_wait() -> None:
    """The request's own deadline ends the wait: before the first token in time-out, after it in a cut."""
    assert isinstance(await failed([Wait(asyncio.Event())], seconds=0.05), BackendTimeout)
    script: Script = [Send(sse(token("Turn "))), Wait(asyncio.Event())]
    assert isinstance(await failed(script, seconds=0.3), BackendCut)
