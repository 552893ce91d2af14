"""Events of an answer, read ahead of a caller who is slow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator

import pytest

from retrieval.clock import Ledger
from retrieval.server.coalescing import _MOST_CHARS, coalesced
from retrieval.speech import Delta, FinishReason, ToolCall, Usage
from retrieval.types import Completed, GenerateEvent

END = Completed(FinishReason.STOP, Usage(), (), 0, Ledger((), 0), "b", "m")


class Source:
    """Events that are counted as they are read."""

    def __init__(self, *events: GenerateEvent, fault: BaseException | None = None) -> None:
        self.read = 0
        self.closed = False
        self.moved = asyncio.Event()
        self._events = events
        self._fault = fault

    async def events(self) -> AsyncGenerator[GenerateEvent, None]:
        try:
            for event in self._events:
                self.read += 1
                self.moved.set()
                yield event
                await asyncio.sleep(0)
            if self._fault is not None:
                raise self._fault
        finally:
            self.closed = True


async def let_run() -> None:
    """Gives every other task some turns."""
    for _ in range(50):
        await asyncio.sleep(0)


async def test_coalesced_gives_each_piece_to_a_caller_who_keeps_up():
    """Nothing waits for company."""
    pieces = [Delta(f"{number} ") for number in range(5)]
    assert [event async for event in coalesced(Source(*pieces, END).events())] == [*pieces, END]


async def test_coalesced_puts_together_what_came_while_the_caller_was_busy():
    """A slow caller gets one longer piece, and the end as it is."""
    source = Source(Delta("a"), Delta("b", "t"), Delta("c", "u", (ToolCall(0, "x"),)), END)
    events = coalesced(source.events())
    assert await anext(events) == Delta("a")
    await let_run()
    assert await anext(events) == Delta("bc", "tu", (ToolCall(0, "x"),))
    assert [event async for event in events] == [END]


async def test_coalesced_reads_no_more_than_the_bound_ahead():
    """A caller who stops holds up the source, not our memory."""
    source = Source(*[Delta("x" * 1024)] * 1000)
    events = coalesced(source.events())
    await anext(events)
    await let_run()
    assert source.read <= _MOST_CHARS // 1024 + 3
    rest = [event async for event in events]
    assert sum(len(event.text) for event in rest if isinstance(event, Delta)) == 999 * 1024
    assert source.read == 1000


async def test_coalesced_raises_after_what_came_before():
    """A fault does not overtake the pieces before it."""
    source = Source(Delta("a"), Delta("b"), fault=ValueError("late"))
    events = coalesced(source.events())
    assert await anext(events) == Delta("a")
    await let_run()
    assert await anext(events) == Delta("b")
    with pytest.raises(ValueError, match="late"):
        await anext(events)


async def test_coalesced_that_is_closed_closes_its_source():
    """Who leaves ends the work behind at once, wherever it stands."""
    source = Source(*[Delta("x")] * 10_000)
    events = coalesced(source.events())
    await anext(events)
    await events.aclose()
    assert source.closed
    assert source.read < 10_000


async def test_coalesced_fault_after_the_caller_left_is_not_lost_in_the_log(recwarn):
    """A fault that nobody waits for any more is no warning."""
    source = Source(Delta("a"), fault=ValueError("late"))
    events = coalesced(source.events())
    await anext(events)
    await let_run()
    await events.aclose()
    await let_run()
    assert not recwarn.list


async def test_coalesced_bounds_calls_of_functions_too():
    """What piles up for a slow caller is bounded, whatever pieces are made of."""
    source = Source(*[Delta("", "", (ToolCall(0, arguments="x" * 100_000),))] * 1000)
    events = coalesced(source.events())
    await anext(events)
    await let_run()
    await events.aclose()
    assert source.read < 10
