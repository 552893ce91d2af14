"""How long a backend may be silent: until its first token, between tokens, and at most until the request's deadline.

Silence is bounded in all, not by phase: a server that connects quickly, sends headers slowly and keeps the line warm
with comments has still sent no token. Only waiting counts, so that a reader who takes his time is not held against the
server.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable
from typing import TypeVar

from retrieval.alarm import Alarm

T = TypeVar("T")


class Silence(Exception):
    """Nothing came for too long; `waited_ms` counts from the last token, or from the start."""

    def __init__(self, waited_ms: float) -> None:
        super().__init__(f"nothing came for {waited_ms:.0f} ms")
        self.waited_ms = waited_ms


class Pacer:
    """The silence of one attempt. Close it."""

    def __init__(self, first_token_s: float, token_s: float, deadline_ns: int) -> None:
        self._token_s = token_s
        self._deadline_s = deadline_ns / 1e9  # on the clock of time.monotonic
        self._left_s = first_token_s
        self._waited_s = 0.0
        self._alarm = Alarm()

    def close(self) -> None:
        """Ends what bounds the waits."""
        self._alarm.close()

    def token(self) -> None:
        """Notes a token; the next one may take its full time."""
        self._left_s = self._token_s
        self._waited_s = 0.0

    def hurry(self, seconds: float) -> None:
        """Shortens what is left, if it is longer."""
        self._left_s = min(self._left_s, seconds)

    async def wait(self, awaited: Awaitable[T]) -> T:
        """Returns what is awaited.

        Raises:
            Silence: it did not come in time.
        """
        began = time.monotonic()
        try:
            with self._alarm.after(min(self._left_s, self._deadline_s - began)):
                return await awaited
        except TimeoutError as error:
            raise Silence((self._waited_s + time.monotonic() - began) * 1e3) from error
        finally:
            spent = time.monotonic() - began
            self._left_s -= spent
            self._waited_s += spent
