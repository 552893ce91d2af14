"""Finds the server that a command talks to: the one named, else that of the data folder, else the usual port."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from retrieval.cli.exits import NoServer
from retrieval.cli.session import Session
from retrieval.server.endpoint_file import running_server

if TYPE_CHECKING:
    from retrieval.client import Client


@asynccontextmanager
async def connect(session: Session, address: str | None = None) -> AsyncIterator[Client]:
    """Opens a client to the session's server, or to the one at `address`, and closes it.

    Raises:
        NoServer: nothing answers there.
        ConfigError: no server is named, and the settings that say where the data folder is cannot be used.
    """
    import grpc.aio

    from retrieval.client import Client, error_info

    target = address or server_address(session)
    async with Client(target, api_key=session.api_key or None) as client:
        try:
            yield client
        except grpc.aio.AioRpcError as error:
            if error.code() is grpc.StatusCode.UNAVAILABLE and error_info(error) is None:
                raise NoServer(target) from error
            raise


def server_address(session: Session) -> str:
    """Returns the address that the session's options, variables or data folder name; otherwise the configured one."""
    if session.server:
        return session.server
    settings = session.load().settings
    return running_server(settings.data.folder) or f"127.0.0.1:{settings.server.port or 50051}"
