"""What a bulk job beside them does to online queries, and what they leave it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import numpy as np

from bench._common.encode.work import QUERY, Parts, require_values, tokens_of
from bench._common.statistics import Quantiles, quantiles
from encoders.types import TextKind, WorkClass

_EVERY_S = 0.05
_BULK_CALL = 4
_BULK_CALLS = 8


@dataclass(frozen=True, slots=True)
class BesideBulk:
    """Latency of a query's embedding from the moment it was due, and the rates of the bulk job."""

    idle: Quantiles
    beside_bulk: Quantiles
    piece_ms: float  # of one bulk text, the best of eight, since other work only adds time
    limit_ms: float  # twice the idle p95, and one piece
    bulk_alone_tokens_per_s: float
    bulk_beside_tokens_per_s: float


@dataclass(slots=True)
class _Job:
    """What the bulk job has done so far."""

    tokens: int = 0
    compute_ns: list[int] = field(default_factory=list)


async def measure_beside_bulk(parts: Parts, seconds: float) -> BesideBulk:
    """Sends a query every 50 ms (open loop), with and without the job, in turn (ABBA), so many seconds each."""
    await parts.dense.encode([QUERY], TextKind.QUERY, WorkClass.ONLINE, None)
    alone = await _rate_alone(parts, seconds / 2)
    piece_ms = await _piece_ms(parts)
    idle: list[int] = []
    beside: list[int] = []
    rates: list[float] = []
    for with_job in (False, True, True, False):
        if not with_job:
            idle += await _queries(parts, seconds)
            continue
        async with _bulk_job(parts) as job:
            done, begun = job.tokens, time.perf_counter()
            beside += await _queries(parts, seconds)
            rates.append((job.tokens - done) / (time.perf_counter() - begun))
    at_rest = quantiles(idle)
    return BesideBulk(
        idle=at_rest,
        beside_bulk=quantiles(beside),
        piece_ms=piece_ms,
        limit_ms=2 * at_rest.p95_ms + piece_ms,
        bulk_alone_tokens_per_s=alone,
        bulk_beside_tokens_per_s=float(np.mean(rates)),
    )


async def _rate_alone(parts: Parts, seconds: float) -> float:
    async with _bulk_job(parts) as job:
        begun = time.perf_counter()
        await asyncio.sleep(seconds)
        return job.tokens / (time.perf_counter() - begun)


async def _piece_ms(parts: Parts) -> float:
    outcomes = await parts.scheduler.submit(parts.engine, parts.long(1) * 8, WorkClass.BULK, None)
    require_values(outcomes)
    return min(outcome.compute_ns for outcome in outcomes) / 1e6


async def _queries(parts: Parts, seconds: float) -> list[int]:
    """Returns how long each query took from the moment it was due, in nanoseconds."""
    start = time.perf_counter_ns()

    async def ask(due_ns: int) -> int:
        await asyncio.sleep(max(0.0, (due_ns - time.perf_counter_ns()) / 1e9))
        require_values(await parts.dense.encode([QUERY], TextKind.QUERY, WorkClass.ONLINE, None))
        return time.perf_counter_ns() - due_ns

    due = [start + int(number * _EVERY_S * 1e9) for number in range(1, int(seconds / _EVERY_S) + 1)]
    return list(await asyncio.gather(*map(ask, due)))


@asynccontextmanager
async def _bulk_job(parts: Parts) -> AsyncIterator[_Job]:
    job = _Job()
    items = parts.long(_BULK_CALL)

    async def go_on() -> None:
        while True:
            outcomes = await parts.scheduler.submit(parts.engine, items, WorkClass.BULK, None)
            require_values(outcomes)
            job.tokens += tokens_of(items)

    tasks = [asyncio.create_task(go_on()) for _ in range(_BULK_CALLS)]
    try:
        yield job
    finally:
        for task in tasks:
            task.cancel()
        for task in tasks:
            with suppress(asyncio.CancelledError):
                await task
