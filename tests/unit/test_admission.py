"""How many requests run, and who waits."""

from __future__ import annotations

import asyncio

import pytest

from retrieval.admission import Admission
from retrieval.deadline import Deadline
from retrieval.errors import Overloaded


async def settle() -> None:
    """Lets every task that can go on go on."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_admission_gives_permits_in_the_order_of_asking() -> None:
    """First come, first served, and a new request does not overtake one that waits."""
    admission = Admission(1, 10, 10_000)
    deadline = Deadline.after(10)
    order: list[int] = []

    async def ask(number: int) -> None:
        await admission.acquire(deadline)
        order.append(number)
        admission.release()

    assert await admission.acquire(deadline) == 0
    tasks = [asyncio.create_task(ask(number)) for number in range(4)]
    await settle()
    assert admission.waiting == 4
    admission.release()
    await asyncio.gather(*tasks)
    assert order == [0, 1, 2, 3]
    assert admission.running == admission.waiting == 0


async def test_admission_refuses_at_once_when_the_queue_is_full() -> None:
    """Beyond the queue's bound the answer is immediate and says when to come back."""
    admission = Admission(1, 0, 250)
    await admission.acquire(Deadline.after(10))
    with pytest.raises(Overloaded) as refused:
        await admission.acquire(Deadline.after(10))
    assert refused.value.limit == 1
    assert refused.value.retry_after_ms == 250


async def test_admission_waits_no_longer_than_the_deadline() -> None:
    """A request whose time is used up while it waits is refused and leaves no trace."""
    admission = Admission(1, 5, 60_000)
    await admission.acquire(Deadline.after(10))
    with pytest.raises(Overloaded):
        await admission.acquire(Deadline.after(0.01))
    assert admission.waiting == 0
    admission.release()
    assert admission.running == 0


async def test_admission_cancel_while_waiting_gives_the_place_away() -> None:
    """A caller that leaves as its permit comes neither holds it nor keeps others from it."""
    admission = Admission(1, 5, 60_000)
    deadline = Deadline.after(10)
    await admission.acquire(deadline)
    leaves = asyncio.create_task(admission.acquire(deadline))
    stays = asyncio.create_task(admission.acquire(deadline))
    await settle()
    admission.release()
    leaves.cancel()
    with pytest.raises(asyncio.CancelledError):
        await leaves
    await asyncio.wait_for(stays, 5)
    admission.release()
    assert admission.running == admission.waiting == 0


async def test_admission_larger_bounds_let_waiting_requests_run() -> None:
    """A reload that raises the bound takes effect for those who wait already."""
    admission = Admission(1, 5, 60_000)
    deadline = Deadline.after(10)
    await admission.acquire(deadline)
    waiting = [asyncio.create_task(admission.acquire(deadline)) for _ in range(2)]
    await settle()
    admission.set_bounds(3, 5, 60_000)
    await asyncio.wait_for(asyncio.gather(*waiting), 5)
    assert admission.running == 3


async def test_admission_lets_tenants_take_turns() -> None:
    """A tenant with many requests does not keep out one with few."""
    admission = Admission(1, 10, 10_000)
    deadline = Deadline.after(10)
    order: list[str] = []

    async def ask(tenant: str) -> None:
        await admission.acquire(deadline, tenant)
        order.append(tenant)
        admission.release()

    await admission.acquire(deadline)
    tasks = [asyncio.create_task(ask(tenant)) for tenant in "aaab"]
    await settle()
    admission.release()
    await asyncio.gather(*tasks)
    assert order == ["a", "b", "a", "a"]
