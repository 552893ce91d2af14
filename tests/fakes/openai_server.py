"""An OpenAI-compatible server on loopback that plays scripts, byte for byte, and sees when its clients leave.

It is a real socket and speaks real HTTP, so the real client runs against it. A script is a list of steps; waiting is
for events of the test, never for time. Each request takes the next script, the last one again and again.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias


@dataclass(frozen=True)
class Send:
    """Sends bytes of the body, in one write or in pieces of `size`."""

    data: bytes
    size: int = 0


@dataclass(frozen=True)
class Wait:
    """Waits until the test sets the event, or the client leaves."""

    event: asyncio.Event


@dataclass(frozen=True)
class Flood:
    """Sends the bytes again and again until the client leaves."""

    data: bytes


@dataclass(frozen=True)
class Raw:
    """Sends bytes as they are, head included; the connection is closed after the script."""

    data: bytes


@dataclass(frozen=True)
class Pause:
    """Gives a client in the same loop the turns that it needs to read what was sent."""

    turns: int = 50


@dataclass(frozen=True)
class Head:
    """Sets the head of a reply with status 200; has to be the first step."""

    content_type: str = "text/event-stream"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Status:
    """Answers with a status other than 200; has to be the first step."""

    code: int
    body: bytes = b'{"error": {"message": "refused"}}'
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Reset:
    """Resets the connection."""


@dataclass(frozen=True)
class Cut:
    """Closes the connection without ending the body."""


@dataclass(frozen=True)
class HangUp:
    """Ends the body as it should be, and closes the connection although its client may use it again."""


Step: TypeAlias = Send | Flood | Raw | Wait | Pause | Head | Status | Reset | Cut | HangUp
Script: TypeAlias = Sequence[Step]


@dataclass
class Exchange:
    """One request, and what became of it."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    sent_bytes: int = 0  # of the body, that the sockets took
    client_left: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)


class OpenAIServer:
    """The server; `serving` starts and stops it."""

    def __init__(self, scripts: Sequence[Script], tls: ssl.SSLContext | None = None) -> None:
        self.exchanges: list[Exchange] = []
        self.open_connections = 0
        self.connections = 0  # ever opened
        self.empty = asyncio.Event()
        self._scripts = scripts
        self._tls = tls
        self._arrived = asyncio.Condition()
        self._port = 0
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def base_url(self) -> str:
        """The address to give to a client."""
        return f"http{'s' if self._tls else ''}://127.0.0.1:{self._port}/v1"

    async def exchange(self, number: int) -> Exchange:
        """Waits for the request with that number, from 0."""
        async with self._arrived:
            await self._arrived.wait_for(lambda: len(self.exchanges) > number)
        return self.exchanges[number]

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[OpenAIServer]:
        """Serves while the body runs; connections that are still open are dropped at its end."""
        server = await asyncio.start_server(self._accept, "127.0.0.1", 0, ssl=self._tls)
        self._port = server.sockets[0].getsockname()[1]
        try:
            yield self
        finally:
            server.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.open_connections += 1
        self.connections += 1
        self.empty.clear()
        try:
            while await self._serve(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client or the test has gone
        finally:
            self.open_connections -= 1
            if not self.open_connections:
                self.empty.set()
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Serves one request; returns whether the connection may serve another."""
        exchange = await _read_request(reader)
        script = self._scripts[min(len(self.exchanges), len(self._scripts) - 1)]
        async with self._arrived:
            self.exchanges.append(exchange)
            self._arrived.notify_all()
        watcher = asyncio.create_task(_watch(reader, exchange))
        try:
            return await _play(script, writer, exchange)
        finally:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
            exchange.ended.set()


def serving(
    *scripts: Script, tls: ssl.SSLContext | None = None
) -> contextlib.AbstractAsyncContextManager[OpenAIServer]:
    """Starts a server that plays the scripts, one a request."""
    return OpenAIServer(scripts, tls).run()


def sse(*events: dict[str, Any] | str) -> bytes:
    """Returns events as a server sends them."""
    return b"".join(
        b"data: " + (event if isinstance(event, str) else json.dumps(event)).encode() + b"\n\n" for event in events
    )


def token(text: str, finish_reason: str | None = None) -> dict[str, Any]:
    """Returns the event of one piece of text."""
    return {"model": "served", "choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish_reason}]}


def answer(*texts: str, finish_reason: str = "stop") -> list[Step]:
    """Returns a script that answers whole."""
    usage = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": len(texts)}}
    events = [token(text) for text in texts]
    return [Send(sse(*events, {"choices": [{"delta": {}, "finish_reason": finish_reason}]}, usage, "[DONE]"))]


async def _play(script: Script, writer: asyncio.StreamWriter, exchange: Exchange) -> bool:
    """Plays a script; returns whether the connection may serve another request."""
    first = script[0] if script else None
    if isinstance(first, Status):
        kind = (("Content-Type", "application/json"), ("Content-Length", str(len(first.body))))
        writer.write(_head(first.code, (*kind, *first.headers)) + first.body)
        await writer.drain()
        return True
    head = first if isinstance(first, Head) else Head()
    kind = (("Content-Type", head.content_type), ("Transfer-Encoding", "chunked"))
    unsent = _head(200, (*kind, *head.headers))
    for step in script:
        if isinstance(step, Send | Flood):
            writer.write(unsent)
            unsent = b""
            await _send(step, writer, exchange)
        elif not await _act(step, writer, exchange):
            return False
    if any(isinstance(step, Raw) for step in script):
        return False
    writer.write(b"0\r\n\r\n")
    await writer.drain()
    return True


async def _act(step: Step, writer: asyncio.StreamWriter, exchange: Exchange) -> bool:
    """Does what is no chunk of the body; returns whether the script goes on."""
    if isinstance(step, Wait):
        await _wait(step.event, exchange)
    elif isinstance(step, Pause):
        for _ in range(step.turns):
            await asyncio.sleep(0)
    elif isinstance(step, Raw):
        writer.write(step.data)
        await writer.drain()
    elif isinstance(step, Reset):
        raw = writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return False
    elif isinstance(step, Cut):
        writer.close()
        return False
    elif isinstance(step, HangUp):
        writer.write(b"0\r\n\r\n")
        writer.close()
        return False
    return True


def _head(code: int, headers: Iterable[tuple[str, str]]) -> bytes:
    lines = [f"HTTP/1.1 {code} Scripted", *(f"{name}: {value}" for name, value in headers), "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def _send(step: Send | Flood, writer: asyncio.StreamWriter, exchange: Exchange) -> None:
    size = (step.size if isinstance(step, Send) else 0) or max(1, len(step.data))
    while True:
        for start in range(0, len(step.data), size):
            piece = step.data[start : start + size]
            writer.write(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
            await writer.drain()
            exchange.sent_bytes += len(piece)
        if isinstance(step, Send):
            return
        await asyncio.sleep(0)  # the client, in the same loop, has its turn


async def _wait(event: asyncio.Event, exchange: Exchange) -> None:
    waits = [asyncio.create_task(event.wait()), asyncio.create_task(exchange.client_left.wait())]
    try:
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)
    if exchange.client_left.is_set():
        raise ConnectionAbortedError


async def _watch(reader: asyncio.StreamReader, exchange: Exchange) -> None:
    """Notes that the client has gone. A client that waits for its reply sends nothing, so any end is a leave."""
    with contextlib.suppress(ConnectionError):
        if await reader.read(1):
            return
    exchange.client_left.set()


async def _read_request(reader: asyncio.StreamReader) -> Exchange:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Exchange(head[0].split(" ")[1], headers, json.loads(body) if body else {})
