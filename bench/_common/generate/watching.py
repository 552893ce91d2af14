"""Watches a process from outside while it is under load: what it computes for the tokens that pass, what it holds."""

from __future__ import annotations

import asyncio
import time

import psutil

from bench._common.generate.figures import Cost
from bench._common.generation.processes import counts_of
from bench._common.memory import own_bytes

_EVERY_S = 0.2
_PATIENCE_S = 60.0
_ALMOST = 0.9


async def streams_open(model: str, streams: int) -> None:
    """Waits until almost all streams are open at the model server.

    Raises:
        TimeoutError: they do not open.
    """
    async with asyncio.timeout(_PATIENCE_S):
        while (await asyncio.to_thread(counts_of, model)).inside < _ALMOST * streams:  # noqa: ASYNC110 - another process
            await asyncio.sleep(_EVERY_S)


async def cost_of(pid: int, model: str, streams: int, seconds: float) -> Cost:
    """Watches for so many seconds, once almost all streams are open.

    Raises:
        TimeoutError: they do not open.
    """
    await streams_open(model, streams)
    before, began = await asyncio.to_thread(counts_of, model), time.monotonic()
    spent_s = await cpu_of(pid, seconds)
    after, ended = await asyncio.to_thread(counts_of, model), time.monotonic()
    return Cost(ended - began, after.requests - before.requests, after.tokens - before.tokens, spent_s)


async def cpu_of(pid: int, seconds: float) -> float:
    """Returns how long a process computes in so many seconds from now."""
    process = psutil.Process(pid)
    before_s = _cpu_s(process)
    await asyncio.sleep(seconds)
    return _cpu_s(process) - before_s


async def peak_bytes(pid: int, until: asyncio.Task[object]) -> int:
    """Returns the most memory that the process held before a task ends."""
    peak = 0
    while not until.done():
        peak = max(peak, own_bytes(pid))
        await asyncio.wait([until], timeout=_EVERY_S)
    return peak


def _cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)
