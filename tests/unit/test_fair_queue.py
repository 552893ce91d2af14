"""Whose item comes next."""

from __future__ import annotations

from encoders.calls import Call
from encoders.errors import WorkExpired
from encoders.fair_queue import FairQueue
from tests.fakes.engines import EchoEngine, items


def _call(*firsts: int, tokens: int = 4, deadline_ns: int | None = None) -> Call[int]:
    return Call(EchoEngine(), items(*firsts, tokens=tokens), deadline_ns, 0)


def _order(queue: FairQueue) -> list[int]:
    taken = []
    while (found := queue.take()) is not None:
        call, position = found
        taken.append(int(call.items[position].ids[0]))
    return taken


async def test_equal_calls_take_turns() -> None:
    """Items of two calls alternate, each call's own in order."""
    queue = FairQueue()
    queue.put(_call(1, 2, 3))
    queue.put(_call(11, 12, 13))
    assert _order(queue) == [1, 11, 2, 12, 3, 13]


async def test_turns_are_counted_in_tokens() -> None:
    """A call of long items gets fewer turns than one of short items."""
    queue = FairQueue()
    queue.put(_call(1, 2, tokens=30))
    queue.put(_call(11, 12, 13, tokens=10))
    assert _order(queue) == [1, 11, 12, 13, 2]


async def test_earliest_deadline_goes_first_among_new_calls() -> None:
    """Calls that arrive together are served by urgency; one without a deadline comes last."""
    queue = FairQueue()
    queue.put(_call(1))
    queue.put(_call(2, deadline_ns=200))
    queue.put(_call(3, deadline_ns=100))
    assert _order(queue) == [3, 2, 1]


async def test_new_call_does_not_have_to_catch_up() -> None:
    """A call that arrives late starts at the present, neither before nor behind the others."""
    queue = FairQueue()
    queue.put(_call(*range(1, 9)))
    for _ in range(4):
        queue.take()
    queue.put(_call(11, 12))
    assert _order(queue) == [11, 5, 12, 6, 7, 8]


async def test_closed_call_is_dropped() -> None:
    """A call that ended early hands out nothing more."""
    queue = FairQueue()
    closed = _call(1, 2)
    queue.put(closed)
    queue.put(_call(11))
    closed.close(WorkExpired(), 0)
    assert _order(queue) == [11]
