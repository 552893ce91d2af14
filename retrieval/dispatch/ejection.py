"""Which servers of a backend do so much worse than their siblings that they are left out while those can answer.

A breaker sees failures in a row; this sees a server that fails half of the time, or that answers, late. One that has
been left out for `open_ms` gets a request again, and is judged by what comes of it.
"""

from __future__ import annotations

from collections.abc import Sequence

from retrieval.dispatch.endpoint import Endpoint

MIN_RESULTS = 10
"""Results that must be known of a server before it is judged."""

SLOWER = 3.0
"""How many times the time to first token of its fastest sibling makes a server too slow."""

SLOW_NS = 10**9
"""Time to first token that is never too slow."""


def ejected(endpoints: Sequence[Endpoint]) -> frozenset[Endpoint]:
    """Returns the servers to leave out, half of them at most; the worst when there are more."""
    if len(endpoints) < 2:
        return frozenset()
    medians_ns = [_median_ns(endpoint) for endpoint in endpoints]
    known_ns = [median_ns for median_ns in medians_ns if median_ns]
    slow_ns = max(SLOW_NS, SLOWER * min(known_ns)) if len(known_ns) > 1 else float("inf")
    faults = [
        (_error_share(endpoint), median_ns, number)
        for number, (endpoint, median_ns) in enumerate(zip(endpoints, medians_ns, strict=True))
        if not _is_due(endpoint) and (_errs(endpoint) or median_ns > slow_ns)
    ]
    worst = sorted(faults, reverse=True)[: len(endpoints) // 2]
    return frozenset(endpoints[number] for *_, number in worst)


def _is_due(endpoint: Endpoint) -> bool:
    """Whether a server has had nothing for so long that it gets a request again."""
    return endpoint.now_ns() - endpoint.sent_ns >= endpoint.resilience().open_ms * 10**6


def _errs(endpoint: Endpoint) -> bool:
    return len(endpoint.failures) >= MIN_RESULTS and _error_share(endpoint) > endpoint.resilience().eject_error_share


def _error_share(endpoint: Endpoint) -> float:
    return endpoint.failures.mean


def _median_ns(endpoint: Endpoint) -> int:
    """The median time to first token; 0 when too little is known."""
    first_token_ns = endpoint.figures.first_token_ns
    return first_token_ns.quantile(0.5) if len(first_token_ns) >= MIN_RESULTS else 0
