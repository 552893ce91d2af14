"""Whether memory stays flat over calls of any length and size."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import numpy as np
import psutil

from bench._common.encode.work import Parts, require_values
from encoders.types import TokenizedText, WorkClass

_CALLERS = 4
_EARLY = 500
_SIZES = (1, 1, 1, 2, 4)  # texts of a call


@dataclass(frozen=True, slots=True)
class Memory:
    """Resident memory of this process."""

    calls: int
    early_bytes: int  # after the first tenth, 500 calls of 5,000
    end_bytes: int
    growth: float  # end over early, less 1


async def measure_memory(parts: Parts, calls: int) -> Memory:
    """Makes so many calls of random lengths and sizes, a few at a time."""
    draw = np.random.default_rng(5)
    pool = parts.mixed(2_000, seed=6)
    sizes = draw.choice(_SIZES, calls)
    starts = draw.integers(0, len(pool) - max(_SIZES), calls)
    planned = iter([pool[start : start + size] for start, size in zip(starts, sizes, strict=True)])
    early = min(_EARLY, calls // 10)
    await _make(parts, [next(planned) for _ in range(early)])
    early_bytes = psutil.Process().memory_info().rss
    await _make(parts, list(planned))
    end_bytes = psutil.Process().memory_info().rss
    return Memory(calls, early_bytes, end_bytes, end_bytes / early_bytes - 1.0)


async def _make(parts: Parts, calls: list[list[TokenizedText]]) -> None:
    waiting = iter(calls)

    async def caller(number: int) -> None:
        work_class = WorkClass.BULK if number == 0 else WorkClass.ONLINE
        for call in waiting:
            require_values(await parts.scheduler.submit(parts.engine, call, work_class, None))

    await asyncio.gather(*map(caller, range(_CALLERS)))
