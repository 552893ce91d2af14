"""The Prometheus metrics of one server, in a registry of its own.

The figures are those of the ledger: what the reply says of a request is what the histograms add up. Labels come from
fixed sets only (methods, codes, stages, caches), so the number of series is bounded.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from retrieval.clock import Ledger, RerankReport, Stage
from retrieval.reuse import ReuseReport
from retrieval.route import GenerationReport

_STEP = re.compile(r"[a-z_]{1,40}")
# Why no answer served again: the gates' own reasons, and what the guard finds two questions to differ in.
_REASONS = frozenset((
    "none", "off", "no_cache", "truncated", "degraded", "unknown", "evidence", "age", "risk", "rule",
    "negation", "number", "unit", "date", "version", "identifier", "direction", "name", "symbol", "question_kind",
    "arguments", "substitution",
))  # fmt: skip
_STAGE_BUCKETS_S = (
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 60.0,
)  # fmt: skip
_REQUEST_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 120.0)


class Metrics:
    """Counts requests and observes where their time went."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        counter, histogram = partial(Counter, registry=self.registry), partial(Histogram, registry=self.registry)
        self._in_flight = Gauge("headrace_in_flight", "Requests that run.", ("method",), registry=self.registry)
        self._requests = counter("headrace_requests", "Requests that ended.", ("method", "code"))
        self._durations = histogram(
            "headrace_request_duration_seconds", "Wall time of requests.", ("method",), buckets=_REQUEST_BUCKETS_S
        )
        text = "Time of the stages: wall, waiting for a worker or permit, computing in an engine."
        self._stages = histogram("headrace_stage_seconds", text, ("stage", "part"), buckets=_STAGE_BUCKETS_S)
        self._stage_series: dict[tuple[Stage, str], Histogram] = {}
        text = "Lookups in caches, by where the value was."
        self._caches = counter("headrace_cache_lookups", text, ("cache", "result", "tier"))
        text = "Answers that ended, by what served again and why nothing did."
        self._answers = counter("headrace_answers", text, ("reuse", "reason"))
        self._degraded = counter("headrace_degraded", "Steps down that were taken.", ("step",))
        self._reranks = counter("headrace_reranks", "Requests that were reranked, by why it ended.", ("stop",))
        text = "Pairs for the cross-encoder: run, or known."
        self._pairs = counter("headrace_rerank_pairs", text, ("source",))
        self._pair_tokens = counter("headrace_rerank_tokens", "Tokens that the cross-encoder ran on.")
        text = "Time of answers: for a server, to its first token, between tokens, to the end; and for callers."
        self._generation = histogram(
            "headrace_generation_seconds", text, ("part", "backend"), buckets=_REQUEST_BUCKETS_S
        )
        text = "Passages scored by late interaction, by where their token vectors came from."
        self._late = counter("headrace_late_passages", text, ("source",))

    @contextmanager
    def in_flight(self, method: str) -> Iterator[None]:
        """Counts a request as running while the body runs."""
        gauge = self._in_flight.labels(method)
        gauge.inc()
        try:
            yield
        finally:
            gauge.dec()

    def request(self, method: str, code: str, duration_s: float) -> None:
        """Counts a request that ended."""
        self._requests.labels(method, code).inc()
        self._durations.labels(method).observe(duration_s)

    def ledger(self, ledger: Ledger) -> None:
        """Observes where the time of a request went, and its caches."""
        for cost in ledger.stages:
            self._stage(cost.stage, "wall").observe(cost.wall_ns / 1e9)
            if cost.queue_ns:
                self._stage(cost.stage, "queue").observe(cost.queue_ns / 1e9)
            if cost.compute_ns:
                self._stage(cost.stage, "compute").observe(cost.compute_ns / 1e9)
        for use in ledger.caches:
            self._caches.labels(use.cache, "hit" if use.hit else "miss", use.tier or "none").inc()
        for step in ledger.degraded:
            self._degraded.labels(step if _STEP.fullmatch(step) else "other").inc()
        if ledger.rerank is not None:
            self._rerank(ledger.rerank)
        if ledger.generation is not None:
            self._generated(ledger.generation, ledger.first_delta_ns)

    def answer(self, reuse: ReuseReport) -> None:
        """Counts an answer that ended, by what the answer cache did."""
        reason = reuse.reason or "none"
        self._answers.labels(reuse.reuse.value, reason if reason in _REASONS else "other").inc()

    def _generated(self, report: GenerationReport, first_delta_ns: int) -> None:
        parts = {
            "queue": report.queue_ns,
            "first_token": report.first_token_ns,
            "token": report.token_ns,
            "total": report.total_ns,
            "caller_first_token": first_delta_ns,
        }
        for part, spent_ns in parts.items():
            self._generation.labels(part, report.backend).observe(spent_ns / 1e9)

    def _rerank(self, report: RerankReport) -> None:
        self._reranks.labels(report.stop or "skipped").inc()
        self._pairs.labels("run").inc(report.pairs)
        self._pairs.labels("cache").inc(report.cached_pairs)
        self._pair_tokens.inc(report.tokens)
        self._late.labels("stored").inc(report.late.passages - report.late.computed)
        self._late.labels("computed").inc(report.late.computed)

    def _stage(self, stage: Stage, part: str) -> Histogram:
        """Returns a series; looking it up in the library takes longer than observing."""
        series = self._stage_series.get((stage, part))
        if series is None:
            series = self._stage_series[stage, part] = self._stages.labels(stage.value, part)
        return series
