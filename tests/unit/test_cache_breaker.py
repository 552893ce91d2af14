"""When Redis is left alone, and when it is tried again."""

from __future__ import annotations

import asyncio

import pytest

from retrieval.caching.redis.breaker import FIRST_PAUSE_S, MAX_PAUSE_S, WELL_AFTER_S, Breaker, probe_while_open


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def _closed(failures_to_open: int = 3, clock: Clock | None = None) -> Breaker:
    breaker = Breaker(failures_to_open, clock or Clock())
    breaker.close()
    return breaker


def test_breaker_starts_open() -> None:
    """Nothing is sent before a probe has succeeded."""
    assert Breaker(3).is_open


def test_breaker_opens_after_failures_in_a_row_only() -> None:
    """A success between them starts the count anew."""
    breaker = _closed()
    states = []
    for calls in ("fail", "fail", "succeed", "fail", "fail", "succeed", "fail", "fail", "fail", "succeed", "close"):
        getattr(breaker, calls)()
        states.append(breaker.is_open)
    assert states == [False] * 8 + [True, True, False]


def test_breaker_pauses_grow_to_a_bound() -> None:
    """Each pause is twice the one before, and two of the longest with their probes fit into a second."""
    breaker = Breaker(3)
    pauses_s = [breaker.next_pause_s() for _ in range(6)]
    assert pauses_s == [0.05, 0.1, 0.2, 0.4, 0.4, 0.4]
    assert (pauses_s[0], pauses_s[-1]) == (FIRST_PAUSE_S, MAX_PAUSE_S)


@pytest.mark.parametrize(("well_s", "pause_s"), [(0.0, 0.2), (WELL_AFTER_S, FIRST_PAUSE_S)])
def test_breaker_pauses_start_small_only_after_a_while_of_health(well_s: float, pause_s: float) -> None:
    """A server that answers probes and fails requests is not tried at every turn."""
    clock = Clock()
    breaker = Breaker(1, clock)
    breaker.next_pause_s()
    breaker.next_pause_s()
    breaker.close()
    clock.now_s += well_s
    breaker.fail()
    assert breaker.next_pause_s() == pause_s


async def test_probes_run_until_one_succeeds() -> None:
    """The breaker closes at the first success, after pauses; it is probed again when it opens, and not before."""
    breaker = Breaker(1)
    outcomes = [False, False, True, True]
    slept_s: list[float] = []

    async def probe() -> bool:
        return outcomes.pop(0)

    async def sleep(seconds: float) -> None:
        slept_s.append(seconds)

    task = asyncio.create_task(probe_while_open(breaker, probe, sleep))
    await breaker.wait_closed()
    assert (outcomes, slept_s) == ([True], [0.05, 0.1])
    await asyncio.sleep(0)
    assert outcomes == [True]
    breaker.fail()
    assert breaker.is_open
    await breaker.wait_closed()
    assert (outcomes, slept_s) == ([], [0.05, 0.1, 0.2])
    task.cancel()
    await asyncio.wait([task])
