"""A connection whose reads and writes end by one moment: a server that sends a byte now and then gains nothing."""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import httpcore

_until: ContextVar[float | None] = ContextVar("until", default=None)


@contextmanager
def ending_by(until: float) -> Iterator[None]:
    """Ends what this thread reads and writes meanwhile by a moment of the monotonic clock."""
    token = _until.set(until)
    try:
        yield
    finally:
        _until.reset(token)


class BoundedStream(httpcore.NetworkStream):
    """A stream that asks at each step how much time is left; connections are kept, so each request has its own."""

    def __init__(self, stream: httpcore.NetworkStream) -> None:
        self._stream = stream

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Reads what there is. Raises: httpcore.ReadTimeout."""
        return self._stream.read(max_bytes, _left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Writes all of it. Raises: httpcore.WriteTimeout."""
        self._stream.write(buffer, _left(timeout, httpcore.WriteTimeout))

    def close(self) -> None:
        """Closes the connection."""
        self._stream.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """Returns the same connection, encrypted. Raises: httpcore.ConnectTimeout."""
        left = _left(timeout, httpcore.ConnectTimeout)
        return BoundedStream(self._stream.start_tls(ssl_context, server_hostname, left))

    def get_extra_info(self, info: str) -> Any:
        """Returns what the connection tells of itself."""
        return self._stream.get_extra_info(info)


def _left(timeout: float | None, late: type[httpcore.TimeoutException]) -> float | None:
    until = _until.get()
    if until is None:
        return timeout
    left = until - time.monotonic()
    if left <= 0:
        raise late("no time is left")
    return left if timeout is None else min(timeout, left)
