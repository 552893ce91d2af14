"""What comes of answers when more are asked for than a server can give, in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from retrieval.dispatch.lane import LaneBounds
from retrieval.settings.generation import QueueSettings
from tests.fakes.lane_load import Ended, make_lane, offer, ticket
from tests.fakes.model_servers import SlotServer
from tests.fakes.virtual_time import run_virtual

SLOTS = 16
CAPACITY = SLOTS / (2.1 * 1.046)  # exp(0.3² / 2) times the median of an answer's time
SECONDS = 300.0
UNLIMITED = LaneBounds(max_concurrent=100_000, max_queued=0, initial_concurrent=100_000)


def _ended(load: float, bounds: LaneBounds) -> Ended:
    async def scenario() -> Ended:
        lane, server = make_lane(bounds), SlotServer(SLOTS, spread=0.3)
        await offer(lane, server, load * CAPACITY, 60, deadline_s=8)
        return await offer(lane, server, load * CAPACITY, SECONDS, deadline_s=8)

    return run_virtual(scenario())


@pytest.mark.parametrize("load", [2, 4])
def test_goodput_stays_at_the_capacity_under_overload(load: float) -> None:
    """At a multiple of what a server can do it still does nine tenths of it, and hardly anybody is let in in vain."""
    ended = _ended(load, LaneBounds(max_concurrent=64, max_queued=64, initial_concurrent=8))
    assert ended.in_time >= 0.9 * CAPACITY * SECONDS
    assert ended.late <= 0.01 * ended.in_time
    assert ended.refused >= (load - 1.1) * CAPACITY * SECONDS


def test_goodput_collapses_without_a_limit() -> None:
    """When every request is sent on at once, all wait inside the server until it is too late for all."""
    ended = _ended(2, UNLIMITED)
    assert ended.in_time <= 0.2 * CAPACITY * SECONDS


def test_predicted_wait_is_about_what_is_waited() -> None:
    """Over many requests that had to wait, one is the other on average, within a factor of two."""

    async def scenario() -> float:
        settings = QueueSettings(max_wait_ms=60_000)
        lane, server = make_lane(LaneBounds(SLOTS, 64, SLOTS), settings), SlotServer(SLOTS, spread=0.3)
        await offer(lane, server, CAPACITY, 30)
        ratios: list[float] = []

        async def ask() -> None:
            asked = ticket(tenant="b")
            predicted_ns = lane.wait_ns(asked)
            place = await lane.acquire(asked)
            if place.waited_ns > 1e8:
                ratios.append(predicted_ns / place.waited_ns)
            await server.answer(lambda: None)
            place.release()

        async with asyncio.TaskGroup() as group:
            group.create_task(offer(lane, server, 2 * CAPACITY, 120))
            for _ in range(110):
                await asyncio.sleep(1)
                group.create_task(ask())
        assert len(ratios) > 50
        return sum(ratios) / len(ratios)

    assert 0.5 <= run_virtual(scenario()) <= 2.0
