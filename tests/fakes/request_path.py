"""A request path without engines: what it does depends on the question, and it records what reached it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

from indexers.types import Epoch
from retrieval.clock import Ledger, Stage, StageClock, StageCost
from retrieval.deadline import Deadline
from retrieval.errors import Overloaded
from retrieval.route import RouteReport
from retrieval.speech import Delta, FinishReason, Usage
from retrieval.types import Completed, Context, Explained, GenerateEvent, GenerateRequest, Retrieved, RetrieveRequest

_LEDGER = Ledger(stages=(StageCost(Stage.EMBED, 1_000, 0, 1_000), StageCost(Stage.OTHER, 10, 0, 0)), total_ns=1_010)


class ScriptedPath:
    """Answers; `raise`, `cancelled`, `overloaded`, `wait` and `endless` in the question make it do that instead.

    `wait` waits for `release`; `endless` streams until it is closed, which `closed` counts.
    """

    def __init__(self) -> None:
        self.requests: list[RetrieveRequest] = []
        self.deadlines: list[Deadline] = []
        self.release = asyncio.Event()
        self.entered = asyncio.Event()
        self.closed = 0

    async def retrieve(self, request: RetrieveRequest, clock: StageClock, deadline: Deadline) -> Retrieved:
        """Finds nothing."""
        self.requests.append(request)
        self.deadlines.append(deadline)
        await self._behave(request.query)
        return Retrieved(request.request_id, (), Context("", 0, 100, "none"), _LEDGER, Epoch(1, 2))

    async def generate(
        self, request: GenerateRequest, clock: StageClock, deadline: Deadline
    ) -> AsyncGenerator[GenerateEvent, None]:
        """Says one word, or says it for ever."""
        yield await self.retrieve(request.retrieve, clock, deadline)
        try:
            yield Delta("word ")
            while "endless" in request.retrieve.query:
                await asyncio.sleep(0)
                yield Delta("word ")
            if "break" in request.retrieve.query:
                raise ValueError("redis://u:SECRET1@h")
        finally:
            self.closed += 1
        yield Completed(FinishReason.STOP, Usage(1, 1), (), 0, _LEDGER, request.backend, "scripted")

    async def explain(self, request: GenerateRequest, clock: StageClock, deadline: Deadline) -> Explained:
        """Says that the only backend would answer."""
        await self.retrieve(request.retrieve, clock, deadline)
        return Explained(RouteReport("scripted", "only"), 0, _LEDGER)

    async def _behave(self, query: str) -> None:
        if "raise" in query:
            raise ValueError("redis://u:SECRET1@h")
        if "cancelled" in query:
            raise asyncio.CancelledError
        if "overloaded" in query:
            raise Overloaded("running requests", 4, 250.0)
        if "wait" in query:
            self.entered.set()
            await self.release.wait()
