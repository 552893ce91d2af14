"""Reads the events of an answer ahead of a caller who is slow, and puts the pieces together that come meanwhile.

A caller who keeps up gets each piece as it comes: nothing waits for company. One who does not gets longer pieces, up to
a bound; past it the events are not read any more, so that a slow caller holds up his backend and not our memory.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import aclosing

from retrieval.speech import Delta
from retrieval.types import GenerateEvent

_MOST_CHARS = 16 * 1024


async def coalesced(events: AsyncGenerator[GenerateEvent, None]) -> AsyncGenerator[GenerateEvent, None]:
    """Yields the events, with pieces that the caller was too slow for put together, and closes them.

    What the events raise is raised after all that came before it.
    """
    ahead = _Ahead()
    reader = asyncio.get_running_loop().create_task(_read(events, ahead))
    reader.add_done_callback(lambda _: ahead.end())
    try:
        while (event := await ahead.take()) is not None:
            yield event
        await reader
    finally:
        reader.cancel()
        await asyncio.wait([reader])
        if not reader.cancelled():
            reader.exception()  # was raised above, or came after the caller had left


async def _read(events: AsyncGenerator[GenerateEvent, None], ahead: _Ahead) -> None:
    async with aclosing(events):
        async for event in events:
            await ahead.put(event)


class _Ahead:
    """What has been read and not been taken; for one reader and one taker."""

    def __init__(self) -> None:
        self._events: deque[GenerateEvent] = deque()
        self._chars = 0
        self._ended = False
        self._wake: asyncio.Future[None] | None = None  # of the one of the two who waits

    async def put(self, event: GenerateEvent) -> None:
        """Adds an event, once there is room."""
        while self._chars >= _MOST_CHARS:
            await self._sleep()
        last = self._events[-1] if self._events else None
        if isinstance(event, Delta):
            self._chars += event.chars + 1
            if isinstance(last, Delta):
                self._events[-1] = _joined(last, event)
                return
        self._events.append(event)
        self._rouse()

    async def take(self) -> GenerateEvent | None:
        """Returns the next event; None at the end."""
        while not self._events:
            if self._ended:
                return None
            await self._sleep()
        event = self._events.popleft()
        if isinstance(event, Delta):
            self._chars = 0  # there is never more than one piece
            self._rouse()
        return event

    def end(self) -> None:
        """Notes that nothing more comes."""
        self._ended = True
        self._rouse()

    async def _sleep(self) -> None:
        self._wake = asyncio.get_running_loop().create_future()
        await self._wake

    def _rouse(self) -> None:
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)


def _joined(first: Delta, second: Delta) -> Delta:
    return Delta(first.text + second.text, first.reasoning + second.reasoning, first.tool_calls + second.tool_calls)
