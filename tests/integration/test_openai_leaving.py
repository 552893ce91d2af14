"""Who leaves an answer of the OpenAI-compatible backend stops the server's work, at once and without a trace."""

from __future__ import annotations

import asyncio
import gc
import logging
from contextlib import aclosing
from itertools import pairwise
from pathlib import Path

import pytest

from retrieval.errors import BackendCut
from retrieval.generation.openai_backend import OpenAIBackend
from retrieval.speech import Delta
from tests.fakes.openai_calls import PROMPT, backend, collect, encrypted, leaving_nothing, params, text_of
from tests.fakes.openai_server import Flood, Raw, Script, Send, Wait, answer, serving, sse, token


async def leave_after_first(opened: OpenAIBackend) -> None:
    """Reads one piece and goes."""
    async with aclosing(opened.stream(PROMPT, params())) as pieces:
        assert isinstance(await anext(pieces), Delta)


async def turns(number: int) -> None:
    """Lets everything that is ready run, so many times; nothing that waits for time gets on."""
    for _ in range(number):
        await asyncio.sleep(0)


@pytest.mark.parametrize("secure", [False, True])
async def test_closing_reaches_the_server_without_waiting(secure: bool, tmp_path: Path) -> None:
    """Once the generator is closed the server sees it within a few turns of the loop, however the line is secured."""
    tls, changes = encrypted(tmp_path) if secure else (None, {})
    stuck: Script = [Send(sse(token("Turn "))), Wait(asyncio.Event())]
    async with (
        serving(stuck, tls=tls) as server,
        backend(server.base_url, **changes) as opened,
        leaving_nothing(server),
    ):
        await leave_after_first(opened)
        await turns(100)
        assert server.exchanges[0].client_left.is_set()


async def test_leaving_frees_fifty_connections_at_once() -> None:
    """GEN-11: the server sees each of 50 clients leave after one token; none stays, and the next call is served."""
    stuck: Script = [Send(sse(token("Turn "))), Wait(asyncio.Event())]
    async with serving(*[stuck] * 50, answer("Hi")) as server, backend(server.base_url) as opened:
        async with leaving_nothing(server), asyncio.TaskGroup() as group:
            for _ in range(50):
                group.create_task(leave_after_first(opened))
        assert all(exchange.client_left.is_set() for exchange in server.exchanges)
        received: list[Delta] = []
        assert await collect(opened, received) is not None
        assert (text_of(received), server.open_connections, server.connections) == ("Hi", 1, 51)


@pytest.mark.parametrize("held", ["<think>", "["])
async def test_cancelling_while_waiting_closes_the_connection(held: str, caplog: pytest.LogCaptureFixture) -> None:
    """GEN-12: a task cancelled while it waits for the next piece leaves no noise in the log and no connection."""
    caplog.set_level(logging.DEBUG, logger="asyncio")
    script: Script = [Send(sse(token(held))), Wait(asyncio.Event())]
    async with serving(script) as server, backend(server.base_url) as opened:
        for number in range(20):
            received: list[Delta] = []
            async with leaving_nothing(server):
                task = asyncio.create_task(collect(opened, received))
                exchange = await server.exchange(number)
                while not received:
                    await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert exchange.client_left.is_set()
    gc.collect()
    noise = [record.getMessage() for record in caplog.records]
    assert not [text for text in noise if "GeneratorExit" in text or "never retrieved" in text]


@pytest.mark.parametrize("seen", [0, 1])
async def test_cancelling_before_the_first_token_closes_the_connection(seen: int) -> None:
    """It is the same while the server has not replied yet, or only with its head."""
    heads: Script = [Send(b": warm\n\n")] * seen
    async with serving([*heads, Wait(asyncio.Event())]) as server, backend(server.base_url) as opened:
        async with leaving_nothing(server):
            task = asyncio.create_task(collect(opened, []))
            await server.exchange(0)
            await turns(20)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert server.exchanges[0].client_left.is_set()


async def test_slow_reader_holds_the_server_back() -> None:
    """While nobody reads, the server cannot send more than the sockets hold: nothing is gathered on our side."""
    async with (
        serving([Flood(sse(token("x" * 32_768)))]) as server,
        backend(server.base_url) as opened,
        leaving_nothing(server),
        aclosing(opened.stream(PROMPT, params())) as pieces,
    ):
        await anext(pieces)
        sent = -1
        while sent != server.exchanges[0].sent_bytes:
            sent = server.exchanges[0].sent_bytes
            await turns(200)
        assert sent < 32_000_000  # what the sockets of a generous system hold


async def test_burst_does_not_hold_up_other_work() -> None:
    """An answer that has arrived whole, in thousands of chunks, is read with pauses in which others run."""
    chunk = sse(token("x"))
    framed = f"{len(chunk):x}\r\n".encode() + chunk + b"\r\n"
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
    received: list[Delta] = []
    turns_between: list[int] = []

    async def watch() -> None:
        while True:
            turns_between.append(len(received))
            await asyncio.sleep(0)

    async with serving([Raw(head + framed * 2000)]) as server, backend(server.base_url) as opened:
        watching = asyncio.create_task(watch())
        with pytest.raises(BackendCut):
            await collect(opened, received)
        watching.cancel()
    assert len(received) == 2000
    assert max(after - before for before, after in pairwise(turns_between)) <= 32
