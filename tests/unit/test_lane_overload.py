"""What comes of answers when more are asked for than a server can give, in virtual time."""

from __future__ import annotations

import pytest

from retrieval.dispatch.lane import LaneBounds
from tests.fakes.lane_load import Ended, make_lane, offer
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
