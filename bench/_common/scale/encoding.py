"""What the encoder gives: the ONNX session alone on one thread and on all, and how long it takes to open."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from bench._common.engines import Encoders
from bench.indexing import bare_rate
from encoders.cpu import usable_cpus
from indexers.types import Document
from retrieval.server.engines import open_encoder, scheduler_of
from retrieval.settings import Settings


@dataclass(frozen=True, slots=True)
class Rates:
    """Tokens a second, and seconds."""

    cores: int
    one: float
    all: float
    opening_s: float


async def measure_rates(settings: Settings, encoders: Encoders, documents: Sequence[Document]) -> Rates:
    """Runs the same documents through the bare session on all threads, on one, and on all again."""
    cores = usable_cpus()
    first = await bare_rate(_with(settings, cores), encoders, documents)
    one = await bare_rate(_with(settings, 1), encoders, documents)
    last = await bare_rate(_with(settings, cores), encoders, documents)
    opening_s = await asyncio.to_thread(_opening_s, settings)
    return Rates(cores, one.per_second, first.plus(last).per_second, opening_s)


def _with(settings: Settings, workers: int) -> Settings:
    return settings.model_copy(update={"encoders": settings.encoders.model_copy(update={"workers": workers})})


def _opening_s(settings: Settings) -> float:
    """Times what an actor that encodes does first."""
    started = time.perf_counter()
    with scheduler_of(settings) as scheduler:
        open_encoder(settings, scheduler)
        return time.perf_counter() - started
