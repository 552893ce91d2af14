"""One timer for the awaits of a stream."""

from __future__ import annotations

import asyncio

import pytest

from retrieval.alarm import Alarm


async def test_alarm_ends_an_await_that_takes_too_long():
    """The await is cancelled and TimeoutError raised, which is no cancel of the task."""
    alarm = Alarm()
    with pytest.raises(TimeoutError), alarm.after(0.01):
        await asyncio.Event().wait()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0
    await asyncio.sleep(0)  # the task goes on


async def test_alarm_is_used_again_after_it_rang_and_after_it_did_not():
    """Each `with` has its own time, whichever came before."""
    alarm = Alarm()
    for seconds in (30.0, 0.01, 30.0, 0.005):
        if seconds > 1:
            with alarm.after(seconds):
                await asyncio.sleep(0)
        else:
            with pytest.raises(TimeoutError), alarm.after(seconds):
                await asyncio.Event().wait()
    alarm.close()


async def test_alarm_that_was_set_for_later_rings_at_the_later_time():
    """A timer of an earlier `with` does not end a later one that has more time."""
    alarm = Alarm()
    with alarm.after(0.01):
        await asyncio.sleep(0)
    rung = asyncio.get_running_loop().time() + 0.05
    with pytest.raises(TimeoutError), alarm.after(0.05):
        await asyncio.Event().wait()
    assert asyncio.get_running_loop().time() >= rung - 0.002


async def test_alarm_without_time_ends_what_waits_at_all():
    """Zero seconds and less leave time for nothing that suspends."""
    for seconds in (0.0, -1.0):
        with pytest.raises(TimeoutError), Alarm().after(seconds):
            await asyncio.Event().wait()


async def test_alarm_leaves_a_cancel_from_outside_alone():
    """A task that is cancelled while it waits is cancelled, not timed out."""
    begun = asyncio.Event()

    async def wait() -> None:
        with Alarm().after(30.0):
            begun.set()
            await asyncio.Event().wait()

    task = asyncio.create_task(wait())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert task.cancelled()


async def test_alarm_leaves_errors_alone():
    """What the body raises comes out as it is."""
    with pytest.raises(ValueError, match="mine"), Alarm().after(30.0):
        raise ValueError("mine")


async def test_alarm_that_is_closed_leaves_no_timer():
    """Nothing is left in the loop, and closing twice does nothing."""
    alarm = Alarm()
    with alarm.after(30.0):
        await asyncio.sleep(0)
    handle = alarm._handle
    assert handle is not None
    alarm.close()
    alarm.close()
    assert handle.cancelled()


async def test_alarms_within_each_other_end_the_inner_or_the_outer():
    """The one whose time is up first raises; the other one's await goes on or ends with it."""
    outer, inner = Alarm(), Alarm()
    with outer.after(30.0), pytest.raises(TimeoutError), inner.after(0.01):
        await asyncio.Event().wait()
    with pytest.raises(TimeoutError), outer.after(0.01), inner.after(30.0):
        await asyncio.Event().wait()
