"""Look-ups within the budget, each in a task of its own.

The caller waits for the task no longer than the budget and may be cancelled; the task reads its replies to the end or
its connection is closed, so no reply is left for the next caller. That the caller has gone is no reason to close a
connection that is merely slow: a new one would cost the next caller more. The lanes count the tasks, so that nobody
asks for a connection that the pool does not have; waiting for a lane is charged to the budget too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from retrieval.caching.redis.breaker import Breaker
from retrieval.caching.redis.calls import RedisUnavailable

_T = TypeVar("_T")
_TURNS = 5  # of the event loop, from a reply's arrival to the end of the task that reads it
_LATE_SHARE = 0.5  # of the budget: when this loop noticed the end so much too late, it was the slow one


class InTime:
    """Runs calls to Redis for callers who wait no longer than `budget_s`; a call itself may take longer."""

    def __init__(self, breaker: Breaker, budget_s: float, lanes: int) -> None:
        self._breaker = breaker
        self._budget_s = budget_s
        self._lanes = asyncio.Semaphore(lanes)
        self._tasks: set[asyncio.Task[None]] = set()
        self.failures = 0

    async def run(self, call: Callable[[], Awaitable[_T]]) -> _T | None:
        """Returns what the call returned; None when it failed or took too long. Raises for cancellation alone."""
        loop = asyncio.get_running_loop()
        deadline_s = loop.time() + self._budget_s
        if not await self._enter(deadline_s):
            self.failures += 1
            return None
        outcome = _Outcome[_T](self._breaker, loop.time() + self._budget_s)
        task = loop.create_task(self._call(call, outcome))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        try:
            await asyncio.wait((task,), timeout=max(0.0, deadline_s - loop.time()))
            if not task.done():
                await self._give_up(task, outcome, loop.time() - deadline_s)
        finally:
            outcome.awaited = False
        if outcome.result is None:
            self.failures += 1
        return outcome.result

    async def close(self) -> None:
        """Cancels what is under way, which closes its connections."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _enter(self, deadline_s: float) -> bool:
        """Waits for a lane; False when none came free in time, or Redis was given up meanwhile."""
        if self._lanes.locked():
            try:
                async with asyncio.timeout_at(deadline_s):
                    await self._lanes.acquire()
            except TimeoutError:
                return False
            if self._breaker.is_open:
                self._lanes.release()
                return False
            return True
        return await self._lanes.acquire()

    async def _call(self, call: Callable[[], Awaitable[_T]], outcome: _Outcome[_T]) -> None:
        try:
            outcome.result = await call()
        except RedisUnavailable:
            outcome.settle(well=False)
        else:
            outcome.settle(well=outcome.awaited or asyncio.get_running_loop().time() <= outcome.deadline_s)
        finally:
            self._lanes.release()

    async def _give_up(self, task: asyncio.Task[None], outcome: _Outcome[_T], late_s: float) -> None:
        """Ends the wait. A reply that came in time may still need some turns of a loop that was busy elsewhere.

        Redis is blamed when it had the whole budget, and not when the caller spent it waiting for a lane or this loop
        spent it elsewhere; then the call's own end will tell.
        """
        for _ in range(_TURNS):
            if task.done():
                return
            await asyncio.sleep(0)
        had_its_time = asyncio.get_running_loop().time() >= outcome.deadline_s
        if had_its_time and late_s < _LATE_SHARE * self._budget_s and not task.done():
            outcome.settle(well=False)


class _Outcome(Generic[_T]):
    """What became of a call: told to the breaker once, by whoever knows first, the caller's clock or the task."""

    def __init__(self, breaker: Breaker, deadline_s: float) -> None:
        self._breaker = breaker
        self._settled = False
        self.awaited = True  # by the caller, who has not gone or given up
        self.deadline_s = deadline_s  # until when an answer counts as one in time, whoever waits for it
        self.result: _T | None = None

    def settle(self, *, well: bool) -> None:
        """Tells the breaker, unless it was told."""
        if self._settled:
            return
        self._settled = True
        if well:
            self._breaker.succeed()
        else:
            self._breaker.fail()
