"""How much of the bare sessions' rate is left behind the scheduler, with more callers than it can serve at once."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np

from bench._common.encode.work import Parts, require_values, tokens_of
from encoders.types import TokenizedText, WorkClass

_CALLERS = 32


@dataclass(frozen=True, slots=True)
class Throughput:
    """Tokens a second, medians over the rounds, and the median of the rounds' own ratios."""

    threads: int
    callers: int
    bare_tokens_per_s: float
    scheduled_tokens_per_s: float
    share: float


async def measure_throughput(parts: Parts, texts: int, rounds: int) -> Throughput:
    """Encodes the same texts on as many threads, bare and through the scheduler, in turn (ABBA)."""
    items = parts.mixed(texts, seed=1)
    bare: list[float] = []
    scheduled: list[float] = []
    ratios: list[float] = []
    await _scheduled(parts, items[: len(items) // 4])
    await asyncio.to_thread(_bare, parts, items[: len(items) // 4])
    for _ in range(rounds):
        first = await asyncio.to_thread(_bare, parts, items)
        middle = [await _scheduled(parts, items), await _scheduled(parts, items)]
        last = await asyncio.to_thread(_bare, parts, items)
        # Equal work: what counts is the time of an arm, so rates are averaged as times.
        ratios.append((1 / first + 1 / last) / sum(1 / rate for rate in middle))
        bare += [first, last]
        scheduled += middle
    return Throughput(
        threads=parts.workers,
        callers=_CALLERS,
        bare_tokens_per_s=float(np.median(bare)),
        scheduled_tokens_per_s=float(np.median(scheduled)),
        share=float(np.median(ratios)),
    )


def _bare(parts: Parts, items: Sequence[TokenizedText]) -> float:
    """Runs the session on plain threads that pull from one iterator."""
    source = iter(items)
    taking = threading.Lock()

    def work() -> None:
        while (item := _next(source, taking)) is not None:
            parts.engine.run([item])

    threads = [threading.Thread(target=work) for _ in range(parts.workers)]
    begun = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return tokens_of(items) / (time.perf_counter() - begun)


def _next(source: Iterator[TokenizedText], taking: threading.Lock) -> TokenizedText | None:
    with taking:
        return next(source, None)


async def _scheduled(parts: Parts, items: Sequence[TokenizedText]) -> float:
    """Sends the texts in calls of one to four from many callers that each wait for their own."""
    source = iter(items)
    done: list[int] = []

    async def caller(number: int) -> None:
        while call := list(islice(source, 1 + number % 4)):
            require_values(await parts.scheduler.submit(parts.engine, call, WorkClass.ONLINE, None))
            done.append(tokens_of(call))

    begun = time.perf_counter()
    await asyncio.gather(*(caller(number) for number in range(_CALLERS)))
    return sum(done) / (time.perf_counter() - begun)
