"""Metrics of jobs: the newest runs added up, in a bounded number of series."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta

from prometheus_client import CollectorRegistry, generate_latest

from indexers.errors import JobStoreUnavailable
from indexers.jobs.state import DocumentState, Run, RunRequest, RunState
from retrieval.telemetry.jobs import JobCollector, figures_of
from tests.fakes.job_store import EPOCH
from tests.fakes.jobs import job_of


def _run(state: RunState, waited_s: float = 0.0) -> Run:
    job = job_of()
    return Run(
        "r", job.key, job.spec, "", RunRequest(), state, EPOCH - timedelta(seconds=waited_s),
        documents={DocumentState.VERIFIED: 3, DocumentState.FAILED: 1}, failures={"parse": 1}, chunks=9, tokens=90,
    )  # fmt: skip


def test_figures_add_up_runs() -> None:
    """Counts are sums, and the queue is as old as the run that waits longest."""
    figures = figures_of([_run(RunState.QUEUED, 5), _run(RunState.QUEUED, 50), _run(RunState.PARTIAL, 500)], EPOCH)
    assert dict(figures.runs) == {RunState.QUEUED: 2, RunState.PARTIAL: 1}
    assert dict(figures.documents) == {DocumentState.VERIFIED: 9, DocumentState.FAILED: 3}
    assert (figures.chunks, figures.tokens, figures.queue_age_s) == (27, 270, 50.0)


async def test_collector_shows_what_was_taken_last_and_outlives_the_store() -> None:
    """A store that fails leaves the figures as they were; the next look brings new ones."""
    answers: list[list[Run] | None] = [[_run(RunState.PARTIAL)], None, [_run(RunState.SUCCEEDED)]]
    registry, collector = CollectorRegistry(), JobCollector()
    registry.register(collector)
    shown: list[str] = []

    async def newest() -> list[Run]:
        answer = answers.pop(0)
        if answer is None:
            raise JobStoreUnavailable("memory", "gone")
        return answer

    async def pause(_: float) -> None:
        shown.append(generate_latest(registry).decode())
        if not answers:
            raise asyncio.CancelledError

    await asyncio.gather(collector.follow(newest, pause), return_exceptions=True)
    assert ['headrace_job_runs{state="partial"} 1.0' in text for text in shown] == [True, True, False]
    assert 'headrace_job_failures{kind="parse"} 1.0' in shown[0]


async def test_collector_bounds_its_series() -> None:
    """However many kinds of failures there are, most of them have no series of their own."""
    registry, collector = CollectorRegistry(), JobCollector()
    registry.register(collector)
    run = replace(_run(RunState.PARTIAL), failures={f"kind{at}": 1 for at in range(1000)})

    async def newest() -> list[Run]:
        return [run]

    async def pause(_: float) -> None:
        raise asyncio.CancelledError

    await asyncio.gather(collector.follow(newest, pause), return_exceptions=True)
    assert generate_latest(registry).decode().count("headrace_job_failures{") == 50
