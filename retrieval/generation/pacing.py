"""How long a backend may be silent: until its first token, between tokens, and at most until the request's deadline.

Silence is bounded in all, not by phase: a server that connects quickly, sends headers slowly and keeps the line warm
with comments has still sent no token. Between tokens only waiting counts, so that a reader who takes his time is not
held against the server; before the first one and after the last there is nothing to read, and all time counts.
"""

from __future__ import annotations

import math
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
        self._began_s = time.monotonic()
        self._token_s = token_s
        self._deadline_s = deadline_ns / 1e9  # on the clock of time.monotonic
        self._until_s = self._began_s + first_token_s  # whatever comes; infinite between tokens
        self._left_s = math.inf  # of waiting, for the next token
        self._waited_s = 0.0
        self._hurried = False
        self._alarm = Alarm()

    def close(self) -> None:
        """Ends what bounds the waits."""
        self._alarm.close()

    def token(self) -> None:
        """Notes a token; the next one may take its full time."""
        self._left_s = self._token_s
        self._waited_s = 0.0
        if not self._hurried:
            self._until_s = math.inf

    def hurry(self, seconds: float) -> None:
        """Shortens what is left, if it is longer; from now on all time counts."""
        self._hurried = True
        self._until_s = min(self._until_s, time.monotonic() + seconds)

    def nothing(self) -> None:
        """Notes that something came, and no token in it.

        Raises:
            Silence: it is too late for one.
        """
        now_s = time.monotonic()
        if now_s >= min(self._until_s, self._deadline_s):
            raise self._silence(self._waited_s, now_s)

    async def wait(self, awaited: Awaitable[T]) -> T:
        """Returns what is awaited.

        Raises:
            Silence: it did not come in time.
        """
        began_s = time.monotonic()
        try:
            with self._alarm.after(min(self._left_s, min(self._until_s, self._deadline_s) - began_s)):
                return await awaited
        except TimeoutError as error:
            now_s = time.monotonic()
            raise self._silence(self._waited_s + now_s - began_s, now_s) from error
        finally:
            spent_s = time.monotonic() - began_s
            self._left_s -= spent_s
            self._waited_s += spent_s

    def _silence(self, waited_s: float, now_s: float) -> Silence:
        return Silence((now_s - self._began_s if math.isinf(self._left_s) else waited_s) * 1e3)
