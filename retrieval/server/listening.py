"""Binds a gRPC server to its addresses: TCP, and a Unix socket for an app in the same pod."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc.aio

from retrieval.errors import ConfigError
from retrieval.settings.service import ServerSettings

_PING_INTERVAL_MS = 10_000


def channel_options(settings: ServerSettings) -> tuple[tuple[str, Any], ...]:
    """Returns gRPC's options; names that it does not know would be ignored without a word."""
    return (
        ("grpc.so_reuseport", 0),  # a second server on the port must fail, not share it
        ("grpc.max_receive_message_length", settings.max_message_bytes),
        ("grpc.max_send_message_length", settings.max_message_bytes),
        ("grpc.http2.min_ping_interval_without_data_ms", _PING_INTERVAL_MS),  # lets clients ping quiet streams
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.keepalive_time_ms", int(settings.keepalive_s * 1e3)),
        ("grpc.keepalive_timeout_ms", _PING_INTERVAL_MS),
        ("grpc.http2.max_pings_without_data", 0),  # a quiet stream is pinged as often as a busy one
    )


def listen_tcp(server: grpc.aio.Server, settings: ServerSettings) -> str:
    """Binds to TCP and returns the address that a client on this machine connects to.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    host = f"[{settings.host}]" if ":" in settings.host else settings.host
    try:
        port = server.add_insecure_port(f"{host}:{settings.port}")
    except RuntimeError as error:
        fault = f"server.port: cannot listen on {host}:{settings.port}; is another server there?"
        raise ConfigError((fault,)) from error
    return f"{_near(settings.host) or host}:{port}"


def _near(host: str) -> str | None:
    """Returns the loopback address for "all addresses", which cannot be connected to everywhere."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return None
    if not address.is_unspecified:
        return None
    return "127.0.0.1" if address.version == 4 else "[::1]"


@contextmanager
def listening_unix(server: grpc.aio.Server, path: str) -> Iterator[None]:
    """Binds to a Unix socket that only this user may open, and removes it; an empty path binds to nothing.

    Raises:
        ConfigError: the socket cannot be made.
    """
    if not path:
        yield
        return
    before = os.umask(0o177)
    try:
        server.add_insecure_port(f"unix:{path}")
    except RuntimeError as error:
        raise ConfigError((f"server.unix_socket: cannot listen on {path}; check the folder",)) from error
    finally:
        os.umask(before)
    try:
        yield
    finally:
        Path(path).unlink(missing_ok=True)
