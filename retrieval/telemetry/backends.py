"""How the backends' servers fare, read when the metrics are: limits, queues, breakers, what became of requests.

A scrape runs in a thread of its own, so what it reads are single numbers, which are never seen half written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from retrieval.dispatch.breaker import BreakerState
from retrieval.dispatch.stats import EndpointStats

_GAUGES: tuple[tuple[str, str, Callable[[EndpointStats], float]], ...] = (
    ("limit", "Requests that a server gets at once, by its latency.", lambda one: one.limit),
    ("running", "Requests that a server answers.", lambda one: one.running),
    ("waiting", "Requests that wait for a server.", lambda one: one.waiting),
    ("available", "Whether a server takes requests.", lambda one: one.breaker is not BreakerState.OPEN),
    ("ejected", "Whether a server is left out while others can answer.", lambda one: one.ejected),
    ("first_token_p50_seconds", "Median time to first token of late.", lambda one: one.first_token_p50_ns / 1e9),
    ("first_token_p95_seconds", "95 % quantile of the time to first token.", lambda one: one.first_token_p95_ns / 1e9),
    ("token_p50_seconds", "Median time between tokens of late.", lambda one: one.token_p50_ns / 1e9),
)
_LABELS = ("backend", "server")


class BackendCollector(Collector):
    """Gives the figures of the servers; `stats` reads them."""

    def __init__(self, stats: Callable[[], Sequence[EndpointStats]]) -> None:
        self._stats = stats

    def collect(self) -> Iterator[Metric]:
        """Yields the metrics."""
        servers = self._stats()
        for name, text, read in _GAUGES:
            family = GaugeMetricFamily(f"headrace_backend_{name}", text, labels=_LABELS)
            for one in servers:
                family.add_metric([one.backend, str(one.server)], float(read(one)))
            yield family
        yield _counted("attempts", "Requests to servers that ended, by outcome.", servers)
        yield _besides(servers)


def _counted(name: str, text: str, servers: Sequence[EndpointStats]) -> Metric:
    family = CounterMetricFamily(f"headrace_backend_{name}", text, labels=(*_LABELS, "outcome"))
    for one in servers:
        for outcome, count in one.attempts.items():
            family.add_metric([one.backend, str(one.server), outcome.value], count)
    return family


def _besides(servers: Sequence[EndpointStats]) -> Metric:
    text = "Requests that were sent besides another, or after one that had failed."
    family = CounterMetricFamily("headrace_backend_extra_attempts", text, labels=(*_LABELS, "kind"))
    for one in servers:
        family.add_metric([one.backend, str(one.server), "hedge"], one.hedges)
        family.add_metric([one.backend, str(one.server), "retry"], one.retries)
    return family
