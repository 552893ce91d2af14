"""Servers of language models as far as their time goes: how long the first token takes, and the rest of an answer."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol


class Busy(Exception):
    """The server refuses."""


class ModelServer(Protocol):
    """Answers in two steps."""

    async def answer(self, first_token: Callable[[], None]) -> None:
        """Calls back at the first token and returns at the end of the answer; raises Busy at once when it refuses."""
        ...


@dataclass
class SlotServer:
    """Works on so many requests at once; the others wait inside, first come, first served, or are refused."""

    slots: int
    prompt_s: float = 0.1
    tokens_s: float = 2.0
    spread: float = 0.5  # standard deviation of the logarithm of both times
    room: int | None = None  # requests that may be inside; None for any number
    draw: random.Random = field(default_factory=lambda: random.Random(7))
    inside: int = 0

    def __post_init__(self) -> None:
        self._free = asyncio.Semaphore(self.slots)

    async def answer(self, first_token: Callable[[], None]) -> None:
        """Waits for a slot, reads the prompt, writes the answer."""
        if self.room is not None and self.inside >= self.room:
            raise Busy
        self.inside += 1
        try:
            async with self._free:
                await asyncio.sleep(self.prompt_s * self.draw.lognormvariate(0, self.spread))
                first_token()
                await asyncio.sleep(self.tokens_s * self.draw.lognormvariate(0, self.spread))
        finally:
            self.inside -= 1


@dataclass
class SharingServer:
    """Works on all requests at once; beyond its capacity each becomes slower in proportion."""

    capacity: float
    prompt_s: float = 0.1
    tokens_s: float = 2.0
    spread: float = 0.5
    draw: random.Random = field(default_factory=lambda: random.Random(7))
    inside: int = 0

    async def answer(self, first_token: Callable[[], None]) -> None:
        """Reads the prompt and writes the answer, in steps, each as fast as the load then allows."""
        self.inside += 1
        try:
            await self._work(self.prompt_s)
            first_token()
            await self._work(self.tokens_s)
        finally:
            self.inside -= 1

    async def _work(self, seconds: float) -> None:
        step = seconds * self.draw.lognormvariate(0, self.spread) / 4
        for _ in range(4):
            await asyncio.sleep(step * max(1.0, self.inside / self.capacity))
