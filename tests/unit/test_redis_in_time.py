"""Calls to Redis for callers who wait a bounded time: who is served, who is not, and what the breaker hears of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

import pytest

from retrieval.caching.redis.breaker import Breaker
from retrieval.caching.redis.calls import RedisUnavailable
from retrieval.caching.redis.in_time import InTime

LONG_S = 20.0
SHORT_S = 0.02


@pytest.fixture
def breaker() -> Breaker:
    """Is closed, and opens at the first failure that it hears of."""
    closed = Breaker(1)
    closed.close()
    return closed


async def _answer() -> str:
    await asyncio.sleep(0)
    return "answer"


async def _fail() -> str:
    raise RedisUnavailable("down")


def _after(event: asyncio.Event) -> Callable[[], Awaitable[str]]:
    async def call() -> str:
        await event.wait()
        return "late"

    return call


async def test_call_in_time_returns_its_answer(breaker: Breaker) -> None:
    """An answer is handed on, and the breaker stays closed."""
    in_time = InTime(breaker, LONG_S, 1)
    assert await in_time.run(_answer) == "answer"
    assert (in_time.failures, breaker.is_open) == (0, False)


async def test_call_that_fails_returns_none_and_is_counted(breaker: Breaker) -> None:
    """A failure is None for the caller, counted once, and heard by the breaker."""
    in_time = InTime(breaker, LONG_S, 1)
    assert await in_time.run(_fail) is None
    assert (in_time.failures, breaker.is_open) == (1, True)


async def test_call_that_takes_too_long_returns_none_and_ends_by_itself(breaker: Breaker) -> None:
    """The breaker hears of it once, at the end of the budget and not again at the end of the call."""
    in_time = InTime(breaker, SHORT_S, 1)
    event = asyncio.Event()
    assert await in_time.run(_after(event)) is None
    assert (in_time.failures, breaker.is_open) == (1, True)
    breaker.close()
    event.set()
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert not breaker.is_open
    assert await InTime(breaker, LONG_S, 1).run(_answer) == "answer"


async def test_call_of_a_cancelled_caller_goes_on(breaker: Breaker) -> None:
    """Cancelling the caller does not cancel the call, whose lane comes free when it has ended."""
    in_time = InTime(breaker, LONG_S, 1)
    event = asyncio.Event()
    caller = asyncio.create_task(in_time.run(_after(event)))
    await asyncio.sleep(0)
    caller.cancel()
    following = asyncio.create_task(in_time.run(_answer))
    await asyncio.wait([caller])
    assert caller.cancelled()
    assert not following.done()
    event.set()
    assert await following == "answer"
    assert not breaker.is_open


async def test_caller_cancelled_before_it_has_a_lane_takes_none(breaker: Breaker) -> None:
    """Who leaves the queue for a lane leaves no trace in it."""
    in_time = InTime(breaker, LONG_S, 1)
    event = asyncio.Event()
    first = asyncio.create_task(in_time.run(_after(event)))
    await asyncio.sleep(0)
    waiting = [asyncio.create_task(in_time.run(_answer)) for _ in range(3)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    waiting[2].cancel()
    event.set()
    assert await first == "late"
    assert await waiting[1] == "answer"
    assert await in_time.run(_answer) == "answer"


async def test_wait_for_a_lane_is_a_failure_that_the_breaker_does_not_hear_of() -> None:
    """That we have no connection left is no sign that Redis is unwell: of two failures it hears of one."""
    breaker = Breaker(2)
    breaker.close()
    in_time = InTime(breaker, SHORT_S, 1)
    event = asyncio.Event()
    results: list[str | None] = await asyncio.gather(*(in_time.run(call) for call in (_after(event), _answer)))
    assert results == [None, None]
    assert (in_time.failures, breaker.is_open) == (2, False)
    event.set()
    await in_time.close()


async def test_wait_for_a_lane_ends_unserved_when_the_breaker_opens(breaker: Breaker) -> None:
    """Who gets a lane after Redis was given up does not ask it."""
    in_time = InTime(breaker, LONG_S, 1)
    event = asyncio.Event()
    holder = asyncio.create_task(in_time.run(_after(event)))
    await asyncio.sleep(0)
    waiting = asyncio.create_task(in_time.run(_answer))
    await asyncio.sleep(0)
    breaker.open()
    event.set()
    assert await waiting is None
    assert await holder == "late"


async def test_answer_that_waited_for_a_busy_loop_is_in_time(breaker: Breaker) -> None:
    """When this process was too busy to look, an answer that is there is taken, and Redis is not blamed."""
    in_time = InTime(breaker, SHORT_S, 1)

    async def busy() -> str:
        until = time.perf_counter() + 3 * SHORT_S
        while time.perf_counter() < until:
            pass
        await asyncio.sleep(0)
        return "answer"

    assert await in_time.run(busy) == "answer"
    assert (in_time.failures, breaker.is_open) == (0, False)


async def test_closing_cancels_what_is_under_way(breaker: Breaker) -> None:
    """Callers get None, and nothing is left running."""
    in_time = InTime(breaker, LONG_S, 2)
    callers = [asyncio.create_task(in_time.run(_after(asyncio.Event()))) for _ in range(2)]
    await asyncio.sleep(0)
    await in_time.close()
    assert await asyncio.gather(*callers) == [None, None]


async def test_budget_spent_waiting_for_a_lane_is_not_blamed_on_redis(breaker: Breaker) -> None:
    """A call that began late is given its own time before the breaker hears of it, though its caller has gone."""
    in_time = InTime(breaker, LONG_S, 1)
    first, second = asyncio.Event(), asyncio.Event()
    holder = asyncio.create_task(in_time.run(_after(first)))
    await asyncio.sleep(0)
    in_time._budget_s = SHORT_S
    late = asyncio.create_task(in_time.run(_after(second)))
    await asyncio.wait([late], timeout=SHORT_S / 2)
    first.set()
    assert await holder == "late"
    assert await late is None
    assert not breaker.is_open
    second.set()
    await in_time.close()
