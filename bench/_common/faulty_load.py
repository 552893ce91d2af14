"""Retrieve calls in open loop while something goes wrong midway, and what they looked like before, during and after."""

from __future__ import annotations

import asyncio
import enum
import random
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import grpc.aio

from bench._common.statistics import Quantiles, quantiles
from bench.load import arrivals
from headrace.v1 import common_pb2, retrieval_pb2_grpc
from headrace.v1 import retrieval_pb2 as wire

FLAG = "shared_cache_unavailable"
_TIMEOUT_S = 10.0
_POOL = 400  # questions that come again
_EXPONENT = 0.8  # of Zipf's law
_TOP_K = 3
_SETTLING = 0.3  # of the first phase, in which caches fill


class Phase(enum.Enum):
    """Where a call was planned."""

    BEFORE = "before"
    DURING = "away"
    AFTER = "back"


@dataclass(frozen=True, slots=True)
class Plan:
    """What is sent when."""

    arrivals_ns: Sequence[int]  # since the start, increasing
    questions: Sequence[str]  # one for each


@dataclass(frozen=True, slots=True)
class Sample:
    """One call and its reply."""

    planned_ns: int
    latency_ns: int  # from the planned time
    code: str
    flagged: bool  # whether it went on without Redis
    shared_hit: bool


@dataclass(frozen=True, slots=True)
class Change:
    """When a phase began: the change of Redis was begun and done."""

    phase: Phase
    begun_ns: int
    done_ns: int


@dataclass(frozen=True, slots=True)
class PhaseFigures:
    """The calls of one phase."""

    phase: str
    calls: int
    failures: int
    flagged: int
    shared_hits: int
    latency: Quantiles


@dataclass(frozen=True, slots=True)
class Figures:
    """What callers noticed."""

    phases: Sequence[PhaseFigures]
    p99_added_ms: float  # while away, beyond before
    flagged_until_s: float  # after the return, the last call that was planned then and went on without Redis
    shared_hit_after_s: float | None  # after the return, when the first shared hit was answered; None without any


def plan_of(rate: float, seconds: float, titles: Sequence[str], new_share: float, seed: int) -> Plan:
    """Returns Poisson arrivals of questions about titles, by Zipf's law; a share of them was never asked before."""
    draw = random.Random(seed)
    planned = arrivals(rate, seconds, poisson=True, seed=seed)
    pool = [f"What does {title} do?" for title in draw.sample(list(titles), min(_POOL, len(titles)))]
    weights = [1.0 / (place + 1) ** _EXPONENT for place in range(len(pool))]
    again: Iterator[str] = iter(draw.choices(pool, weights, k=len(planned)))
    questions = [
        f"How does {draw.choice(titles)} behave in case {number}?" if draw.random() < new_share else next(again)
        for number in range(len(planned))
    ]
    return Plan(planned, questions)


async def send_all(
    stub: retrieval_pb2_grpc.RetrievalServiceAsyncStub, plan: Plan, collection: str, started_ns: int
) -> list[Sample]:
    """Sends each call at its time, whatever became of those before."""
    calls: list[asyncio.Task[Sample]] = []
    for planned_ns, question in zip(plan.arrivals_ns, plan.questions, strict=True):
        await asyncio.sleep(max(0.0, (started_ns + planned_ns - time.monotonic_ns()) / 1e9))
        request = wire.RetrieveRequest(collection=collection, query=question, top_k=_TOP_K)
        calls.append(asyncio.create_task(_send(stub, request, planned_ns, started_ns)))
    return await asyncio.gather(*calls)


def figures_of(samples: Sequence[Sample], changes: Sequence[Change]) -> Figures:
    """Splits the calls by phase; those of the first moments, while caches fill, belong to none."""
    away, back = changes
    settled_ns = int(away.begun_ns * _SETTLING)
    spans = (
        (Phase.BEFORE, settled_ns, away.begun_ns),
        (Phase.DURING, away.begun_ns, back.done_ns),
        (Phase.AFTER, back.done_ns, max((one.planned_ns for one in samples), default=0) + 1),
    )
    phases = [_phase(phase, [one for one in samples if start <= one.planned_ns < end]) for phase, start, end in spans]
    after = [one for one in samples if one.planned_ns >= back.done_ns]
    flagged = [one.planned_ns for one in after if one.flagged]
    hits = [one.planned_ns + one.latency_ns for one in after if one.shared_hit]
    return Figures(
        phases=phases,
        p99_added_ms=phases[1].latency.p99_ms - phases[0].latency.p99_ms,
        flagged_until_s=(max(flagged, default=back.done_ns) - back.done_ns) / 1e9,
        shared_hit_after_s=(min(hits) - back.done_ns) / 1e9 if hits else None,
    )


def _phase(phase: Phase, samples: Sequence[Sample]) -> PhaseFigures:
    answered = [one for one in samples if one.code == grpc.StatusCode.OK.name]
    return PhaseFigures(
        phase=phase.value,
        calls=len(samples),
        failures=len(samples) - len(answered),
        flagged=sum(one.flagged for one in answered),
        shared_hits=sum(one.shared_hit for one in answered),
        latency=quantiles([one.latency_ns for one in answered]),
    )


async def _send(
    stub: retrieval_pb2_grpc.RetrievalServiceAsyncStub, request: wire.RetrieveRequest, planned_ns: int, started_ns: int
) -> Sample:
    code, flagged, shared_hit = grpc.StatusCode.OK, False, False
    try:
        reply = await stub.Retrieve(request, timeout=_TIMEOUT_S)
        flagged = FLAG in reply.ledger.degraded
        shared_hit = any(use.tier == common_pb2.CACHE_TIER_SHARED for use in reply.ledger.caches)
    except grpc.aio.AioRpcError as error:
        code = error.code()
    return Sample(planned_ns, time.monotonic_ns() - started_ns - planned_ns, code.name, flagged, shared_hit)
