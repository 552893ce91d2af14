"""What an embedding costs besides its tokens and the run of the session."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass

import numpy as np

from bench._common.encode.work import QUERY, Parts
from encoders.types import TextKind, WorkClass


@dataclass(frozen=True, slots=True)
class Overhead:
    """Medians over single embeddings, in milliseconds."""

    embedding_ms: float  # from the call to the vector
    tokenizing_ms: float
    run_ms: float  # of the session, where the scheduler ran it
    framework_ms: float  # the median of what is left of each embedding
    bare_ms: float  # tokenizing and running it on the calling thread, without any framework
    difference_ms: float  # between the two medians


async def measure_overhead(parts: Parts, embeddings: int) -> Overhead:
    """Embeds a query through the scheduler and bare, in turn."""
    rows = []
    for number in range(embeddings):
        arms = (_scheduled, _bare) if number % 2 else (_bare, _scheduled)
        found = {arm: await arm(parts) for arm in arms}
        rows.append([*found[_scheduled], found[_bare][0]])
    whole, tokens, run, bare = np.array(rows[embeddings // 10 :], dtype=np.float64).T / 1e6
    return Overhead(
        embedding_ms=float(np.median(whole)),
        tokenizing_ms=float(np.median(tokens)),
        run_ms=float(np.median(run)),
        framework_ms=float(np.median(whole - tokens - run)),
        bare_ms=float(np.median(bare)),
        difference_ms=float(np.median(whole) - np.median(bare)),
    )


async def _scheduled(parts: Parts) -> tuple[int, int, int]:
    # The two steps of `encode`, so that both are timed in place, with caches as they are then.
    begun = time.perf_counter_ns()
    items = parts.dense.tokenize([QUERY], TextKind.QUERY)
    tokens = time.perf_counter_ns() - begun
    [outcome] = await parts.dense.encode_tokenized(items, WorkClass.ONLINE, None)
    return time.perf_counter_ns() - begun, tokens, outcome.compute_ns


async def _bare(parts: Parts) -> tuple[int]:
    def embed() -> int:
        begun = time.perf_counter_ns()
        parts.engine.run(parts.dense.tokenize([QUERY], TextKind.QUERY))
        return time.perf_counter_ns() - begun

    return (await asyncio.to_thread(embed),)
