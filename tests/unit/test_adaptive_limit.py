"""Where the limit of a server settles, in virtual time, with servers that share or queue."""

from __future__ import annotations

import asyncio

import pytest

from retrieval.dispatch.lane import Lane, LaneBounds
from retrieval.dispatch.limit import AdaptiveLimit
from tests.fakes.lane_load import Ended, make_lane, offer
from tests.fakes.model_servers import ModelServer, SharingServer, SlotServer
from tests.fakes.virtual_time import run_virtual

WIDE = LaneBounds(max_concurrent=512, max_queued=64, initial_concurrent=8)
HOLD_S = 2.1 * 1.133  # mean time of an answer of the fakes: exp(0.5² / 2) times the median


async def _mean_limit(lane: Lane, seconds: float) -> float:
    seen = []
    for _ in range(50):
        await asyncio.sleep(seconds / 50)
        seen.append(lane.limit)
    return sum(seen) / len(seen)


async def _settled(server: ModelServer, rate: float, warm_s: float, seconds: float) -> tuple[float, Ended]:
    """Returns the mean limit after `warm_s` of that load, and how the requests ended that came then."""
    lane = make_lane(WIDE)
    await offer(lane, server, rate, warm_s)
    watched = asyncio.create_task(_mean_limit(lane, seconds))
    ended = await offer(lane, server, rate, seconds)
    return await watched, ended


@pytest.mark.parametrize("slots", [1, 4, 64])
def test_limit_settles_at_the_slots_of_a_server(slots: int) -> None:
    """At three times what it can do, a server of fixed slots is kept busy, with hardly any queue inside."""
    capacity = slots / HOLD_S
    seconds = 2000 / capacity
    limit, ended = run_virtual(_settled(SlotServer(slots), 3 * capacity, seconds, seconds))
    assert slots * 0.8 <= limit <= slots * 1.15 + 1
    assert ended.in_time >= 0.85 * capacity * seconds
    assert ended.late <= 0.02 * ended.in_time


def test_limit_settles_within_the_tolerance_of_a_server_that_shares() -> None:
    """Where each request slows all others, the limit is where the first token takes about twice the idle time."""
    capacity = 16 / HOLD_S
    limit, ended = run_virtual(_settled(SharingServer(16), 3 * capacity, 200, 300))
    assert 16 <= limit <= 2.6 * 16
    assert ended.in_time >= 0.9 * capacity * 300


def test_limit_does_not_believe_what_it_first_saw_under_load() -> None:
    """A server that is overfull from its first request on is not taken for a slow one."""

    async def scenario() -> int:
        lane = make_lane(LaneBounds(512, 64, initial_concurrent=40))
        await offer(lane, SlotServer(4), 3 * 4 / HOLD_S, 1500)
        return lane.limit

    assert run_virtual(scenario()) <= 6


def test_limit_of_a_server_that_became_slower_for_good_recovers() -> None:
    """Ten times longer prompts are load of a kind that fewer requests do not cure, so the baseline is learnt again."""

    async def scenario() -> float:
        server, lane = SlotServer(32), make_lane(WIDE)
        await offer(lane, server, 40, 200)
        server.prompt_s *= 10
        await offer(lane, server, 40, 300)
        watched = asyncio.create_task(_mean_limit(lane, 200))
        await offer(lane, server, 40, 200)
        return await watched

    assert 24 <= run_virtual(scenario()) <= 42


def test_limit_does_not_follow_load_that_creeps_up() -> None:
    """A shared server that is used to the full for an hour is not taken for slower, and its limit does not creep up."""
    limit, _ = run_virtual(_settled(SharingServer(4), 3 * 4 / HOLD_S, 3000, 600))
    assert limit <= 3 * 4


def test_limit_stays_where_it_is_without_traffic_that_needs_more() -> None:
    """Traffic far below the limit says nothing about more, however fast it is served."""

    async def scenario() -> int:
        lane = make_lane(LaneBounds(512, 64, initial_concurrent=20))
        await offer(lane, SlotServer(64), 2, 600)
        return lane.limit

    assert run_virtual(scenario()) == 20


def test_limit_follows_refusals_down_and_recovers() -> None:
    """A server that answers 429 beyond its slots is used nearly to the full, and seldom asked in vain."""
    capacity = 64 / HOLD_S
    limit, ended = run_virtual(_settled(SlotServer(64, room=64), 3 * capacity, 60, 200))
    assert 45 <= limit <= 66
    assert ended.in_time >= 0.8 * capacity * 200
    assert ended.failed <= 0.04 * ended.in_time


def test_limit_is_not_moved_by_a_mix_of_cached_and_uncached_prompts() -> None:
    """First tokens that take a hundredth when the prefix was cached are no sign of a full server."""

    async def scenario() -> float:
        server, lane = SlotServer(32, prompt_s=0.3, spread=1.5), make_lane(WIDE)
        rate = 3 * 32 / (2.3 * 3.08)
        await offer(lane, server, rate, 400)
        watched = asyncio.create_task(_mean_limit(lane, 400))
        await offer(lane, server, rate, 400)
        return await watched

    assert 20 <= run_virtual(scenario()) <= 45


def test_limit_is_lowered_once_a_round_trip() -> None:
    """Many refusals of requests that were sent together are one sign, not many."""
    limit = AdaptiveLimit(initial=100, maximum=100, now_ns=0)
    for _ in range(100):
        limit.refused(sent_ns=10, running=100, now_ns=20)
    assert limit.value == 80
    limit.refused(sent_ns=30, running=80, now_ns=40)
    assert limit.value == 64


def test_limit_stays_between_one_and_the_maximum() -> None:
    """Neither refusals nor speed take it out of its bounds."""
    limit = AdaptiveLimit(initial=300, maximum=20, now_ns=0)
    assert limit.value == 20
    for at in range(1, 100):
        limit.refused(sent_ns=2 * at, running=1, now_ns=2 * at + 1)
    assert limit.value == 1
    for at in range(1000, 5000):
        limit.sent(limit.value)
        limit.first_token(sent_ns=at, now_ns=at + 1, tolerance=2.0)
        assert 1 <= limit.value <= 20
    assert limit.value >= 8


def test_limit_is_not_lowered_by_differences_of_our_own_event_loop() -> None:
    """A server that answers within milliseconds is not full, even when it takes ten times as long as before."""
    limit, seen = AdaptiveLimit(initial=16, maximum=16, now_ns=0), []
    for at in range(1, 2000):
        elapsed_ns = 500_000 if at < 1000 else 8_000_000
        limit.sent(limit.value)
        limit.first_token(sent_ns=at * 10**9, now_ns=at * 10**9 + elapsed_ns, tolerance=2.0)
        seen.append(limit.value)
    assert sum(value == 16 for value in seen[-1000:]) >= 950  # but for dips
