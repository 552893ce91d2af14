"""How the caches fare, read when the metrics are: sizes, the shared tier, and what comparisons of answers found.

A scrape runs in a thread of its own, so what it reads are single numbers, which are never seen half written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from retrieval.caching.caches import Caches
from retrieval.caching.operating import figures_of
from retrieval.caching.shared import SharedStats


class CacheCollector(Collector):
    """Gives the figures of a server's caches."""

    def __init__(self, caches: Caches) -> None:
        self._caches = caches

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics."""
        sizes = figures_of(self._caches)
        yield _gauge("headrace_cache_entries", "Values in a cache.", [(one.cache, one.entries) for one in sizes])
        yield _gauge("headrace_cache_bytes", "Bytes of a cache.", [(one.cache, one.used_bytes) for one in sizes])
        capacities = [(one.cache, one.capacity_bytes) for one in sizes]
        yield _gauge("headrace_cache_capacity_bytes", "Bytes that a cache may take.", capacities)
        evictions = CounterMetricFamily("headrace_cache_evictions", "Values that left for others.", labels=["cache"])
        for one in sizes:
            evictions.add_metric([one.cache], one.evictions)
        yield evictions
        yield self._comparisons()
        stats = self._caches.shared.stats()
        if stats.kind != "none":
            yield from _shared(stats)

    def _comparisons(self) -> Metric:
        family = CounterMetricFamily(
            "headrace_answer_comparisons",
            "Comparisons of a kept answer with a new one, by whether the kept one had served.",
            labels=["served", "result"],
        )
        counts = self._caches.answers.operations.comparisons
        for served in (True, False):
            for agree in (True, False):
                labels = ["yes" if served else "no", "agree" if agree else "disagree"]
                family.add_metric(labels, counts.get((served, agree), 0))
        return family


def _shared(stats: SharedStats) -> Iterator[Metric]:
    available = float(stats.available)
    yield GaugeMetricFamily("headrace_shared_cache_available", "Whether the shared tier answers.", available)
    counts = {
        "lookups": ("Keys that were asked of the shared tier.", stats.lookups),
        "hits": ("Keys that it held.", stats.hits),
        "damaged": ("Values in it that were not what their key promised.", stats.damaged),
        "writes": ("Values written to it.", stats.writes),
        "dropped_writes": ("Values that were not written to it.", stats.dropped_writes),
        "failures": ("Calls to it that failed or took too long.", stats.failures),
    }
    for name, (text, count) in counts.items():
        yield CounterMetricFamily(f"headrace_shared_cache_{name}", text, count)


def _gauge(name: str, text: str, values: Sequence[tuple[str, float]]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=["cache"])
    for cache, value in values:
        family.add_metric([cache], value)
    return family
