"""Carries HTTP over asyncio's own streams.

`httpx2` reads sockets through anyio, whose every read runs a cancel scope and pauses and resumes the socket: half of
what a token costs on its way through. Timeouts are left out, since who waits here bounds the wait.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, cast

import httpcore2
import httpx2


class DirectTransport(httpx2.AsyncBaseTransport):
    """Sends requests to their servers without a proxy."""

    def __init__(self, context: ssl.SSLContext, idle_connections: int, idle_s: float) -> None:
        # How many requests go out is decided before they come here; a limit of its own would be a hidden queue.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=context,
            max_connections=None,
            max_keepalive_connections=idle_connections,
            keepalive_expiry=idle_s,
            network_backend=_Network(),
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request; the body of the response is still to come."""
        url = request.url
        with _translated():
            response = await self._pool.handle_async_request(
                httpcore2.Request(
                    method=request.method,
                    url=httpcore2.URL(scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path),
                    headers=request.headers.raw,
                    content=cast("AsyncIterator[bytes]", request.stream),
                )
            )
        return httpx2.Response(response.status, headers=response.headers, stream=_Body(response))

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._pool.aclose()


class _Body(httpx2.AsyncByteStream):
    def __init__(self, response: httpcore2.Response) -> None:
        self._response = response

    async def __aiter__(self) -> AsyncIterator[bytes]:
        with _translated():
            async for chunk in self._response.aiter_stream():
                yield chunk

    async def aclose(self) -> None:
        await self._response.aclose()


class _Network(httpcore2.AsyncNetworkBackend):
    """Opens connections."""

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the interface's
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> _Connection:
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


@contextmanager
def _translated() -> Iterator[None]:
    """Turns what the pool raises into what the client does."""
    try:
        yield
    except httpcore2.ProtocolError as error:
        raise httpx2.RemoteProtocolError(str(error)) from error
    except (httpcore2.NetworkError, httpcore2.UnsupportedProtocol) as error:
        raise httpx2.NetworkError(str(error)) from error
