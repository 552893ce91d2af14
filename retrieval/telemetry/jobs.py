"""How indexing jobs fare, read when the metrics are: runs by state, documents, failures, tokens, the age of the queue.

A scrape runs in a thread of its own and stores are asked on the event loop, so the figures are taken there every few
seconds and only read here. They are those of the newest run of each job: labels come from fixed sets, so that neither
jobs nor runs add series.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime

import structlog
from prometheus_client.metrics_core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from indexers.errors import JobStoreUnavailable
from indexers.jobs.state import DocumentState, Run, RunState

LOOK_S = 5.0
_KINDS = 50  # kinds of failures that have series of their own

_log = structlog.get_logger("headrace")


@dataclass(frozen=True, slots=True)
class JobFigures:
    """The newest runs of all jobs, added up."""

    runs: Mapping[RunState, int] = field(default_factory=dict)
    documents: Mapping[DocumentState, int] = field(default_factory=dict)
    failures: Mapping[str, int] = field(default_factory=dict)
    chunks: int = 0
    tokens: int = 0
    queue_age_s: float = 0.0  # of the oldest run that waits


def figures_of(runs: Iterable[Run], now: datetime) -> JobFigures:
    """Adds up runs."""
    states: Counter[RunState] = Counter()
    documents: Counter[DocumentState] = Counter()
    failures: Counter[str] = Counter()
    chunks, tokens, age_s = 0, 0, 0.0
    for run in runs:
        states[run.state] += 1
        documents.update(run.documents)
        failures.update(run.failures)
        chunks, tokens = chunks + run.chunks, tokens + run.tokens
        if run.state is RunState.QUEUED:
            age_s = max(age_s, (now - run.created_at).total_seconds())
    return JobFigures(states, documents, failures, chunks, tokens, age_s)


class JobCollector(Collector):
    """Gives the figures that were taken last."""

    def __init__(self) -> None:
        self._figures = JobFigures()

    async def follow(
        self,
        newest_runs: Callable[[], Awaitable[Iterable[Run]]],
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """Takes the figures every few seconds until it is cancelled."""
        while True:
            try:
                self._figures = figures_of(await newest_runs(), datetime.now(UTC))
            except JobStoreUnavailable as error:
                _log.warning("job_store_unavailable", reason=error.reason)
            await pause(LOOK_S)

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics."""
        figures = self._figures
        runs = {state.value: figures.runs.get(state, 0) for state in RunState}
        yield _gauge("headrace_job_runs", "Newest runs of jobs, by state.", "state", runs)
        documents = {state.value: figures.documents.get(state, 0) for state in DocumentState}
        yield _gauge("headrace_job_documents", "Documents in the newest runs of jobs, by state.", "state", documents)
        most = dict(Counter(figures.failures).most_common(_KINDS))
        yield _gauge("headrace_job_failures", "Failures in the newest runs of jobs, by kind.", "kind", most)
        yield GaugeMetricFamily("headrace_job_chunks", "Chunks that the newest runs of jobs wrote.", figures.chunks)
        yield GaugeMetricFamily("headrace_job_tokens", "Tokens that the newest runs of jobs encoded.", figures.tokens)
        text = "Seconds that the oldest run waits for a worker."
        yield GaugeMetricFamily("headrace_job_queue_age_seconds", text, figures.queue_age_s)


def _gauge(name: str, text: str, label: str, values: Mapping[str, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for value, count in values.items():
        family.add_metric([value], count)
    return family
