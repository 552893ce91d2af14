"""One deadline for a whole request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from retrieval.clock import Stage
from retrieval.deadline import Deadline
from retrieval.errors import DeadlineExceeded


async def test_deadline_bound_names_the_stage() -> None:
    """What is awaited too long ends with the stage and the budget in the error."""
    deadline = Deadline.after(0.02)
    with pytest.raises(DeadlineExceeded) as passed:
        async with deadline.bound(Stage.SEARCH):
            await asyncio.Event().wait()
    assert passed.value.stage == "search"
    assert passed.value.budget_ms == 20.0
    with pytest.raises(DeadlineExceeded):
        deadline.check(Stage.FUSE)


async def test_deadline_bound_passes_a_cancel_on() -> None:
    """The caller's cancel is no deadline."""

    async def work() -> None:
        async with Deadline.after(10).bound(Stage.EMBED):
            await asyncio.Event().wait()

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_deadline_iterate_bounds_each_item() -> None:
    """Items pass unchanged, and one that does not come ends with the deadline."""

    async def items() -> AsyncIterator[int]:
        yield 1
        yield 2
        await asyncio.Event().wait()

    with Deadline.after(0.05).iterating(Stage.GENERATE, items()) as bounded:
        assert [await anext(bounded), await anext(bounded)] == [1, 2]
        with pytest.raises(DeadlineExceeded):
            await anext(bounded)
        with pytest.raises(DeadlineExceeded):
            await anext(bounded)


def test_deadline_share_is_of_what_is_left() -> None:
    """A share of a passed deadline is now, not the past."""
    passed = Deadline.after(-5)
    assert passed.remaining_s() < 0
    assert passed.share_ns(0.5) > passed.at_ns
    ahead = Deadline.after(100)
    assert ahead.at_ns - ahead.share_ns(0.25) > 70e9
