"""Carries HTTP over asyncio's own streams.

By itself `httpcore2` reads sockets through anyio, whose every read runs a cancel scope, and pauses and resumes the
socket: half of what a token costs on its way through. Timeouts are left out, since who waits here bounds the wait.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2


class AsyncioNetwork(httpcore2.AsyncNetworkBackend):
    """Opens connections."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> _Connection:
        """Opens a connection.

        Raises:
            httpcore2.ConnectError: nobody answers there.
        """
        loop = asyncio.get_running_loop()
        reader = _Reader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        with _raising(httpcore2.ConnectError):
            transport, _ = await loop.create_connection(lambda: protocol, host, port)
        return _Connection(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


class _Reader(asyncio.StreamReader):
    """A reader that knows whether something waits to be read."""

    unread_bytes = 0

    def feed_data(self, data: Any) -> None:
        self.unread_bytes += len(data)
        super().feed_data(data)

    async def read(self, n: int = -1) -> bytes:
        data = await super().read(n)
        self.unread_bytes -= len(data)
        return data


class _Connection(httpcore2.AsyncNetworkStream):
    """An open connection."""

    def __init__(
        self, reader: _Reader, writer: asyncio.StreamWriter, plain: asyncio.StreamWriter | None = None
    ) -> None:
        self._reader = reader
        self._writer = writer
        self._plain = plain  # below an encrypted line; kept, since a writer that nobody holds closes its transport

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:  # noqa: ASYNC109 - as above
        try:
            return await self._reader.read(max_bytes)
        except OSError as error:
            raise httpcore2.ReadError(str(error)) from error

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:  # noqa: ASYNC109 - as above
        with _raising(httpcore2.WriteError):
            self._writer.write(buffer)
            await self._writer.drain()

    async def aclose(self) -> None:
        # Not `close`, which waits for the other side where the line is encrypted.
        self._writer.transport.abort()
        await asyncio.sleep(0)  # the socket is closed in the loop's next turn

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - as above
    ) -> _Connection:
        loop = asyncio.get_running_loop()
        reader = _Reader(loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        plain = self._writer.transport
        try:
            with _raising(httpcore2.ConnectError):
                transport = await loop.start_tls(plain, protocol, ssl_context, server_hostname=server_hostname)
        except BaseException:
            await self.aclose()
            raise
        if transport is None:
            raise httpcore2.ConnectError("the connection was lost")
        protocol.connection_made(transport)
        return _Connection(reader, asyncio.StreamWriter(transport, protocol, reader, loop), self._writer)

    def get_extra_info(self, info: str) -> Any:
        if info == "is_readable":
            # Of an idle connection: what comes unasked, an end above all, makes it useless.
            return bool(self._reader.unread_bytes) or self._reader.at_eof() or self._writer.is_closing()
        return self._writer.get_extra_info({"client_addr": "sockname", "server_addr": "peername"}.get(info, info))


@contextmanager
def _raising(kind: type[Exception]) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise kind(str(error)) from error
