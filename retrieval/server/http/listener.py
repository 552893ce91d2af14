"""Runs the HTTP listener beside gRPC, in the same event loop: binds, serves, and lets its calls end when it stops.

uvicorn takes no signals here and says nothing of single requests: both are the server's own. When the listener's body
ends, calls have had their time already (`Drain`); what still runs is told so and ended.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, cast

import uvicorn
from starlette.applications import Starlette
from starlette.datastructures import Headers
from uvicorn.protocols.http.h11_impl import H11Protocol

from retrieval.errors import ConfigError
from retrieval.live import LiveSettings
from retrieval.server.app import App
from retrieval.server.http.application import Parts, application, check_host, endpoints
from retrieval.server.http.endpoint import Entrance
from retrieval.server.http.errors import TooManyConnections
from retrieval.settings.http import HttpSettings

REQUEST_HEAD_S = 10.0  # for the next head to come whole, since the connection was made or the last reply ended
_IDLE_S = 5  # for a connection that brings nothing at all after a reply
_BACKLOG = 1024
_CLOSE_S = 1
_BROKEN_OFF = "ASGI callable returned without completing response."


@asynccontextmanager
async def http_listener(app: App, settings: HttpSettings, live: LiveSettings) -> AsyncIterator[int | None]:
    """Listens while the body runs, and yields the port; None when the settings turn it off.

    Enter it before whatever ends with `app.drain.finish`: then calls end while the socket is open, and new ones are
    told that the server goes away.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    if not settings.port:
        yield None
        return
    parts = Parts(
        path=app.pipeline,
        gate=app.guard.gate,
        encoders=app.encoding,
        collections=app.index,
        models=app.models,
        backends=tuple(app.engines.dispatcher.services),
        healthy=lambda: app.scheduler.workers.healthy and not app.drain.draining,
        live=live,
    )
    async with listening(parts, settings) as port:
        yield port


@asynccontextmanager
async def listening(parts: Parts, settings: HttpSettings) -> AsyncIterator[int]:
    """Serves the parts while the body runs, and yields the port; port 0 takes a free one.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    open_to_all = not parts.live.current.auth.keys

    def check(headers: Headers) -> None:
        if len(server.server_state.connections) > settings.max_connections:
            raise TooManyConnections(settings.max_connections)
        check_host(headers, open_to_all=open_to_all)

    entrance = Entrance(parts.gate, settings.max_body_bytes, check)
    server = _Server(_config(application(endpoints(parts, entrance, settings.keepalive_s))))
    with _bound(settings) as bound:
        port = int(bound.getsockname()[1])
        task = asyncio.create_task(server.serve(sockets=[bound]))
        try:
            await server.up.wait()
            yield port
        finally:
            for work in tuple(entrance.running):
                work.cancel()
            server.should_exit = True
            await task
            await asyncio.gather(*server.server_state.tasks, return_exceptions=True)


def _config(app: Starlette) -> uvicorn.Config:
    logging.getLogger("uvicorn.error").addFilter(_says_something)
    return uvicorn.Config(
        cast("Any", app),  # its types are uvicorn's own, and stricter than those of ASGI
        log_config=None,
        log_level="warning",
        access_log=False,
        lifespan="off",
        ws="none",
        interface="asgi3",
        http=_Protocol,
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=_IDLE_S,
        timeout_graceful_shutdown=_CLOSE_S,
    )


class _Protocol(H11Protocol):
    """Closes a connection that brings no further request, which uvicorn keeps open for ever once it brings a byte."""

    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._wait_after(None)

    def on_response_complete(self) -> None:
        replied = self.cycle
        super().on_response_complete()  # which may begin with the next request, when that has come already
        self._wait_after(replied)

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_after(self, cycle: object | None) -> None:
        self._stop_waiting()
        if not self.transport.is_closing():
            self._waiting = self.loop.call_later(REQUEST_HEAD_S, self._close_unused, cycle)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _close_unused(self, cycle: object | None) -> None:
        if self.cycle is cycle and not self.transport.is_closing():
            self.transport.close()


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.up = asyncio.Event()

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.up.set()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _says_something(record: logging.LogRecord) -> bool:
    """Leaves out what is logged of streams that we break off on purpose; the log line of the request tells of them."""
    return record.msg != _BROKEN_OFF


@contextmanager
def _bound(settings: HttpSettings) -> Iterator[socket.socket]:
    try:
        family, _, _, _, address = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=family, backlog=_BACKLOG)
    except OSError as error:
        fault = f"http.port: cannot listen on {settings.host}:{settings.port}; is another server there?"
        raise ConfigError((fault,)) from error
    with listening:
        yield listening
