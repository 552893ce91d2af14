"""Who gets a place at a server, who waits, and who is refused at once; in virtual time."""

from __future__ import annotations

import asyncio

import pytest

from retrieval.dispatch.lane import LaneBounds, Place
from retrieval.errors import Overloaded
from retrieval.route import Priority
from retrieval.settings.generation import QueueSettings, TenantWeight
from tests.fakes.lane_load import make_lane, ticket
from tests.fakes.virtual_time import now_ns, run_virtual

ONE = LaneBounds(max_concurrent=1, max_queued=10, initial_concurrent=1)


async def _hold(place: Place, seconds: float) -> None:
    await asyncio.sleep(seconds)
    place.release()


def test_lane_gives_a_free_place_at_once() -> None:
    """Below the limit nobody waits, and a place that is given back twice counts once."""

    async def scenario() -> None:
        lane = make_lane(LaneBounds(4, 0, 2))
        first, second = await lane.acquire(ticket()), await lane.acquire(ticket())
        assert (first.waited_ns, lane.running, lane.limit) == (0, 2, 2)
        first.release()
        first.release()
        assert lane.running == 1
        second.release(overloaded=True)
        assert lane.running == 0

    run_virtual(scenario())


def test_lane_refuses_when_no_place_comes_within_max_wait() -> None:
    """The second of two gets Overloaded after the time that it may wait, not an empty answer (GEN-13)."""

    async def scenario() -> None:
        lane, began_ns = make_lane(ONE, QueueSettings(max_wait_ms=1000)), now_ns()
        holding = asyncio.create_task(_hold(await lane.acquire(ticket()), 10))
        with pytest.raises(Overloaded) as refused:
            await lane.acquire(ticket())
        assert now_ns() - began_ns == pytest.approx(1e9)
        assert refused.value.limit == 1
        assert "central" in refused.value.resource
        await holding
        assert (lane.running, lane.waiting) == (0, 0)

    run_virtual(scenario())


def test_lane_refuses_at_once_when_the_wait_would_be_too_long() -> None:
    """Once it is known how long places are held, nobody waits in vain; the refusal says when to come back."""

    async def scenario() -> None:
        lane = make_lane(ONE, QueueSettings(max_wait_ms=5000))
        await _hold(await lane.acquire(ticket()), 10)
        holding = asyncio.create_task(_hold(await lane.acquire(ticket()), 10))
        assert lane.wait_ns(ticket()) == pytest.approx(10e9)
        asked_ns = now_ns()
        with pytest.raises(Overloaded) as refused:
            await lane.acquire(ticket())
        assert now_ns() == asked_ns
        assert refused.value.retry_after_ms == pytest.approx(10_000)
        await asyncio.sleep(6)
        place = await lane.acquire(ticket(seconds=60))
        assert place.waited_ns == pytest.approx(4e9)
        await holding

    run_virtual(scenario())


def test_lane_keeps_the_time_of_an_answer_back() -> None:
    """A place that comes too late for an answer before the deadline is of no use, so it is not waited for."""

    async def scenario() -> None:
        lane = make_lane(ONE, QueueSettings(max_wait_ms=60_000))
        await _hold(await lane.acquire(ticket()), 10)
        await lane.acquire(ticket())
        with pytest.raises(Overloaded):
            await lane.acquire(ticket(seconds=19))
        waits = asyncio.create_task(lane.acquire(ticket(seconds=21)))
        await asyncio.sleep(0)
        assert lane.waiting == 1
        waits.cancel()
        await asyncio.wait({waits})
        assert lane.waiting == 0

    run_virtual(scenario())


def test_lane_bounds_its_queue_and_lets_a_new_tenant_in() -> None:
    """When the queue is full the tenant with the most yields its newest request, which is refused at once."""

    async def scenario() -> None:
        lane, began_ns = make_lane(LaneBounds(1, 2, 1)), now_ns()
        held = await lane.acquire(ticket("a"))
        waiting = [asyncio.create_task(lane.acquire(ticket("a"))) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(Overloaded):
            await lane.acquire(ticket("a"))
        other = asyncio.create_task(lane.acquire(ticket("b")))
        with pytest.raises(Overloaded):
            await waiting[1]
        assert now_ns() == began_ns
        held.release()
        (await waiting[0]).release()
        (await other).release()
        assert (lane.running, lane.waiting) == (0, 0)

    run_virtual(scenario())


def test_lane_shares_by_the_weights_of_tenants() -> None:
    """A tenant of weight 3 is served three times as often while both wait; a reload takes effect at once."""

    async def scenario() -> list[str]:
        settings = QueueSettings(max_wait_ms=600_000, tenants=(TenantWeight(tenant="a", weight=3.0),))
        lane = make_lane(LaneBounds(1, 100, 1), settings)
        served: list[str] = []

        async def ask(tenant: str) -> None:
            place = await lane.acquire(ticket(tenant, 600))
            served.append(tenant)
            await _hold(place, 1)

        async with asyncio.TaskGroup() as group:
            for tenant in "b" * 30 + "a" * 30:
                group.create_task(ask(tenant))
        return served

    served = run_virtual(scenario())
    assert abs(served[1:33].count("a") - 24) <= 1


def test_lane_serves_interactive_requests_before_batches() -> None:
    """Who waits for an answer goes ahead of who does not."""

    async def scenario() -> list[str]:
        lane, order = make_lane(ONE), []
        held = await lane.acquire(ticket())

        async def ask(priority: Priority) -> None:
            place = await lane.acquire(ticket(priority=priority))
            order.append(priority.name)
            place.release()

        tasks = [asyncio.create_task(ask(one)) for one in (Priority.BATCH, Priority.BACKGROUND, Priority.INTERACTIVE)]
        await asyncio.sleep(0)
        held.release()
        await asyncio.gather(*tasks)
        return order

    assert run_virtual(scenario()) == ["INTERACTIVE", "BATCH", "BACKGROUND"]


def test_lane_passes_a_place_on_whose_request_was_cancelled() -> None:
    """A caller that leaves as its place comes neither holds it nor keeps others from it."""

    async def scenario() -> None:
        lane = make_lane(ONE)
        held = await lane.acquire(ticket())
        leaves, stays = (asyncio.create_task(lane.acquire(ticket())) for _ in range(2))
        await asyncio.sleep(0)
        held.release()
        leaves.cancel()
        (await stays).release()
        assert leaves.cancelled()
        assert (lane.running, lane.waiting) == (0, 0)

    run_virtual(scenario())
