"""How long a backend may be silent: until its first token, between tokens, and at most until the request's deadline.

Waits are bounded in all, not by phase: a server that connects quickly, sends headers slowly and keeps the line warm
with comments has still sent no token.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from retrieval.errors import BackendTimeout


class Pacer:
    """The silence of one attempt. Times are on the clock of `time.monotonic`."""

    def __init__(self, backend: str, first_token_s: float, token_s: float, deadline_ns: int) -> None:
        self._backend = backend
        self._token_s = token_s
        self._deadline = deadline_ns / 1e9
        self._heard = time.monotonic()
        self._due = self._heard + first_token_s

    def token(self) -> None:
        """Notes a token; the next one is due from now on."""
        self.expect_within(self._token_s)

    def expect_within(self, seconds: float) -> None:
        """Sets when the next thing is due."""
        self._heard = time.monotonic()
        self._due = self._heard + seconds

    @asynccontextmanager
    async def bound(self) -> AsyncIterator[None]:
        """Bounds what is awaited inside.

        Raises:
            BackendTimeout: nothing came in time.
        """
        left = min(self._due, self._deadline) - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, left)):
                yield
        except TimeoutError as error:
            raise BackendTimeout(self._backend, (time.monotonic() - self._heard) * 1e3) from error
