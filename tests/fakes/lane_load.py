"""Requests that come at random to a lane with a model server behind it, in virtual time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass

from retrieval.dispatch.lane import Lane, LaneBounds
from retrieval.dispatch.types import Ticket
from retrieval.errors import Overloaded
from retrieval.route import Priority
from retrieval.settings.generation import QueueSettings
from tests.fakes.model_servers import Busy, ModelServer
from tests.fakes.virtual_time import now_ns


@dataclass
class Ended:
    """How the requests of a run ended."""

    in_time: int = 0
    late: int = 0
    refused: int = 0
    failed: int = 0


def make_lane(bounds: LaneBounds, settings: QueueSettings | None = None) -> Lane:
    """Returns a lane on the virtual clock of the running loop."""
    asked = settings or QueueSettings()
    return Lane("central", bounds, lambda: asked, now_ns)


def ticket(tenant: str = "a", seconds: float = 20.0, priority: Priority = Priority.INTERACTIVE) -> Ticket:
    """Returns a ticket whose deadline is that many virtual seconds away."""
    return Ticket(tenant, priority, now_ns() + int(seconds * 1e9))


async def offer(lane: Lane, server: ModelServer, rate: float, seconds: float, deadline_s: float = 20.0) -> Ended:
    """Sends so many requests a second, as a Poisson process, and returns how they ended."""
    loop, draw, ended = asyncio.get_running_loop(), random.Random(1), Ended()
    until = loop.time() + seconds
    async with asyncio.TaskGroup() as group:
        while loop.time() < until:
            await asyncio.sleep(draw.expovariate(rate))
            group.create_task(_ask(lane, server, deadline_s, ended))
    return ended


async def _ask(lane: Lane, server: ModelServer, deadline_s: float, ended: Ended) -> None:
    asked = ticket(seconds=deadline_s)
    try:
        place = await lane.acquire(asked)
    except Overloaded:
        ended.refused += 1
        return
    failed = await _served(server, place.first_token)
    place.release(overloaded=failed)
    if failed:
        ended.failed += 1
    elif now_ns() <= asked.deadline_ns:
        ended.in_time += 1
    else:
        ended.late += 1


async def _served(server: ModelServer, first_token: Callable[[int], None]) -> bool:
    sent_ns = now_ns()
    try:
        await server.answer(lambda: first_token(now_ns() - sent_ns))
    except Busy:
        return True
    return False
