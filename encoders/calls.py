"""One call to the scheduler: its items, what became of them, and the event loop that waits for all of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Generic, TypeVar

from encoders.errors import EncoderError
from encoders.types import Engine, Outcome, TokenizedText

T = TypeVar("T")


class Call(Generic[T]):
    """The state of a call. Everything but `deliver` and the constructor is called under the lock of the call's lane."""

    def __init__(
        self,
        engine: Engine[T],
        items: Sequence[TokenizedText],
        deadline_ns: int | None,
        submitted_ns: int,
        *,
        by_length: bool = False,
    ) -> None:
        """`by_length` hands items out by rising length, so that texts of like length come one after another."""
        self.engine = engine
        self.items = items
        self.deadline_ns = deadline_ns
        self.submitted_ns = submitted_ns
        self.closed = False
        self._loop = asyncio.get_running_loop()
        self.future: asyncio.Future[list[Outcome[T]]] = self._loop.create_future()
        self._outcomes: list[Outcome[T] | None] = [None] * len(items)
        self._order = range(len(items)) if not by_length else sorted(range(len(items)), key=self._tokens_at)
        self._handed_out = 0
        self._settled = 0

    @property
    def waiting_items(self) -> int:
        """Items that no worker has taken yet; none once the call is closed."""
        return 0 if self.closed else len(self.items) - self._handed_out

    @property
    def waiting_tokens(self) -> int:
        """Tokens of the waiting items."""
        return sum(map(self._tokens_at, self._order[self._handed_out :])) if self.waiting_items else 0

    @property
    def next_tokens(self) -> int:
        """Tokens of the next waiting item; there must be one."""
        return self._tokens_at(self._order[self._handed_out])

    def hand_out(self) -> int:
        """Gives the position of the next waiting item to a worker."""
        self._handed_out += 1
        return self._order[self._handed_out - 1]

    def settle(self, position: int, outcome: Outcome[T]) -> bool:
        """Notes an outcome; returns whether it was the last one. The first one counts, and none once it is closed."""
        if self.closed or self._outcomes[position] is not None:
            return False
        self._outcomes[position] = outcome
        self._settled += 1
        self.closed = self._settled == len(self.items)
        return self.closed

    def close(self, error: EncoderError, now_ns: int) -> None:
        """Ends the call now; items without an outcome get the error, whether or not a worker is at them."""
        self.closed = True
        for position, item in enumerate(self.items):
            if self._outcomes[position] is None:
                waited = now_ns - self.submitted_ns
                self._outcomes[position] = Outcome(None, error, item.token_count, item.truncated, waited, 0)

    def deliver(self) -> None:
        """Wakes the waiting loop, from any thread, with the outcomes of a closed call."""
        # A loop that was closed meanwhile has nobody left who waits.
        with suppress(RuntimeError):
            self._loop.call_soon_threadsafe(self._resolve)

    def _tokens_at(self, position: int) -> int:
        return self.items[position].token_count

    def _resolve(self) -> None:
        if not self.future.done():
            self.future.set_result([outcome for outcome in self._outcomes if outcome is not None])
