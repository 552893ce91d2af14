"""A proxy on loopback that lets a TCP connection fail in the ways that networks do, at the moment a test says.

It can answer late, keep a connection open and silent, cut it in the middle of a reply, reset it, or send bytes of its
own. It can also end TLS, for servers that speak none. Faults hold until `heal`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator
from dataclasses import dataclass

HOST = "127.0.0.1"
_CHUNK_BYTES = 1 << 16


@dataclass
class Faults:
    """What happens to replies. Requests always pass, late by `delay_s`."""

    delay_s: float = 0.0  # each way
    cut_after_bytes: int | None = None  # of the next reply; the connection is closed there
    garbage: bytes | None = None  # sent in the place of every reply
    extra: bytes = b""  # sent once, before the next reply


class TcpProxy:
    """Passes connections on to a port of this machine."""

    def __init__(self, upstream_port: int, context: ssl.SSLContext | None = None) -> None:
        self.faults = Faults()
        self.connections = 0  # that were ever accepted
        self._upstream_port = upstream_port
        self._context = context
        self._flowing = asyncio.Event()
        self._flowing.set()
        self._server: asyncio.Server | None = None
        self._port = 0
        self._open: dict[asyncio.StreamWriter, asyncio.Event] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def port(self) -> int:
        """Where it listens; the same again after `refuse` and `accept`."""
        return self._port

    async def accept(self) -> None:
        """Listens."""
        self._server = await asyncio.start_server(self._serve, HOST, self._port, ssl=self._context)
        self._port = self._server.sockets[0].getsockname()[1]

    async def refuse(self) -> None:
        """Listens no longer and drops every connection."""
        if self._server is not None:
            self._server.close()
        await self.drop()

    async def drop(self, *, reset: bool = False) -> None:
        """Closes every connection, on request in the way that throws away what was on its way."""
        for writer in list(self._open):
            if reset:
                linger = struct.pack("ii", 1, 0)
                writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()
        for ended in self._open.values():
            ended.set()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def stall(self) -> None:
        """Keeps connections open and lets nothing through."""
        self._flowing.clear()

    def heal(self) -> None:
        """Ends all faults."""
        self.faults = Faults()
        self._flowing.set()

    async def close(self) -> None:
        """Ends everything."""
        self.heal()
        await self.refuse()
        if self._server is not None:
            await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self._open[writer] = asyncio.Event()
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError):
                await self._connect(reader, writer)
        finally:
            del self._open[writer]
            self._tasks.discard(task)
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        upstream, request = await asyncio.open_connection(HOST, self._upstream_port)
        directions: list[asyncio.Task[object]] = [
            asyncio.create_task(self._pass(reader, request, replies=False)),
            asyncio.create_task(self._pass(upstream, writer, replies=True)),
            asyncio.create_task(self._open[writer].wait()),
        ]
        try:
            await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in directions:
                task.cancel()
            await asyncio.gather(*directions, return_exceptions=True)
            request.close()
            with contextlib.suppress(OSError):
                await request.wait_closed()

    async def _pass(self, source: asyncio.StreamReader, target: asyncio.StreamWriter, *, replies: bool) -> None:
        while content := await source.read(_CHUNK_BYTES):
            if self.faults.delay_s:
                await asyncio.sleep(self.faults.delay_s)
            await self._flowing.wait()
            if replies:
                content, ends = self._spoil(content)
                target.write(content)
                if ends:
                    return
            else:
                target.write(content)
            await target.drain()

    def _spoil(self, content: bytes) -> tuple[bytes, bool]:
        """Returns what is sent instead, and whether the connection ends after it."""
        faults = self.faults
        if faults.garbage is not None:
            return faults.garbage, False
        if faults.cut_after_bytes is not None:
            return content[: faults.cut_after_bytes], True
        extra, faults.extra = faults.extra, b""
        return extra + content, False


@contextlib.asynccontextmanager
async def running_proxy(upstream_port: int, context: ssl.SSLContext | None = None) -> AsyncIterator[TcpProxy]:
    """Gives a proxy that listens."""
    proxy = TcpProxy(upstream_port, context)
    await proxy.accept()
    try:
        yield proxy
    finally:
        await proxy.close()
