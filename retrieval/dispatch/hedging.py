"""Two requests for one answer: a second server is asked when the first is slow, and the first piece of either wins.

"The Tail at Scale" (Dean and Barroso, 2013) calls them hedged requests. Tasks exist only while two may race; whoever
has not won is cancelled as soon as that is known, and the winner does not wait for the others to be gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from retrieval.dispatch.attempts import Exchange
from retrieval.dispatch.endpoint import Endpoint
from retrieval.dispatch.failures import most_telling
from retrieval.dispatch.figures import MIN_FIRST_TOKENS
from retrieval.errors import BackendError, Overloaded
from retrieval.route import Outcome
from retrieval.settings.generation import BackendSettings, ResilienceSettings
from retrieval.speech import BackendEnd, Delta

Runner = asyncio.Task[Delta | BackendEnd]


class Race:
    """A request that has a place, and perhaps a second one. `close` waits for all that was left behind."""

    def __init__(self, primary: Exchange) -> None:
        self._primary = primary
        self._runners: dict[Runner, Exchange] = {}
        self._endings: list[asyncio.Task[None]] = []

    async def win(self, delay_s: float, second: Callable[[], Exchange | None]) -> tuple[Exchange, Delta | BackendEnd]:
        """Returns who sent a first piece first, and that; asks `second` for another request after `delay_s`.

        Raises:
            BackendUnavailable, BackendTimeout: all failed.
        """
        winner: Exchange | None = None
        outcome = Outcome.LOST
        try:
            primary = asyncio.create_task(self._primary.first())
            self._runners[primary] = self._primary
            done, _ = await asyncio.wait(self._runners, timeout=delay_s)
            if not done and (hedge := second()) is not None:
                self._runners[asyncio.create_task(hedge.start())] = hedge
            winner, piece = await self._first_piece()
            return winner, piece
        except asyncio.CancelledError:
            outcome = Outcome.LEFT
            raise
        finally:
            self._call_off(winner, outcome)

    async def close(self) -> None:
        """Returns when all that was called off has ended; what it raised by then concerns nobody."""
        if self._endings:
            await asyncio.wait(self._endings)  # leaves them to go on by themselves when this is cancelled
            await asyncio.gather(*self._endings, return_exceptions=True)

    async def _first_piece(self) -> tuple[Exchange, Delta | BackendEnd]:
        errors = list[BackendError | Overloaded]()
        pending = set(self._runners)
        while pending:
            done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
            for runner in [each for each in self._runners if each in done]:
                try:
                    return self._runners[runner], runner.result()
                except (BackendError, Overloaded) as error:
                    errors.append(error)
        raise most_telling(errors)

    def _call_off(self, winner: Exchange | None, outcome: Outcome) -> None:
        for runner, exchange in self._runners.items():
            if exchange is winner:
                continue
            if not runner.done() or runner.cancelled() or runner.exception() is None:
                exchange.settle(outcome)
            runner.cancel()
            exchange.called_off = True
            self._endings.append(asyncio.create_task(_end(runner, exchange)))


def hedge_delay_s(endpoint: Endpoint, settings: ResilienceSettings) -> float | None:
    """Returns after how long a second server may be asked besides this one; None when none may."""
    first_token_ns = endpoint.figures.first_token_ns
    if not settings.hedge or len(first_token_ns) < MIN_FIRST_TOKENS:
        return None
    return first_token_ns.quantile(settings.hedge_quantile) / 1e9


def answers_as_well(other: BackendSettings, first: BackendSettings, complexity: float) -> bool:
    """Tells whether another backend answers such a question as well: a quick bad answer would win each race."""
    return other.kind != "extractive" and other.capability >= min(first.capability, complexity)


async def _end(runner: Runner, exchange: Exchange) -> None:
    try:
        await asyncio.gather(runner, return_exceptions=True)
    finally:
        await exchange.close()
