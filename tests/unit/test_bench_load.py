"""The plan of an open-loop run, and what is made of its calls."""

from __future__ import annotations

import pytest

from bench.load import Sent, arrivals, summarise


def test_fixed_arrivals_are_evenly_spaced() -> None:
    """10 a second for half a second."""
    assert arrivals(10.0, 0.5, poisson=False, seed=1) == [0, 100_000_000, 200_000_000, 300_000_000, 400_000_000]


def test_poisson_arrivals_keep_the_rate_and_are_repeatable() -> None:
    """The same seed gives the same plan; gaps vary around the mean."""
    planned = arrivals(100.0, 100.0, poisson=True, seed=7)
    assert planned == arrivals(100.0, 100.0, poisson=True, seed=7)
    assert planned == sorted(planned)
    assert len(planned) == pytest.approx(10_000, rel=0.05)


def test_summary_counts_latency_of_successes_and_errors_by_code() -> None:
    """A refused call is no fast answer."""
    sent = [
        Sent(0, 0, 2_000_000, "OK"),
        Sent(1_000_000_000, 5_000_000, 4_000_000, "OK"),
        Sent(2_000_000_000, 0, 1_000, "RESOURCE_EXHAUSTED"),
    ]
    summary = summarise(sent, 1.0)
    assert summary.codes == {"OK": 2, "RESOURCE_EXHAUSTED": 1}
    assert summary.latency.count == 2
    assert summary.latency.p50_ms == pytest.approx(3.0)
    assert summary.client_lateness.max_ms == 5.0
    assert summary.achieved_rate == pytest.approx(1.0, rel=1e-3)


def test_summary_of_nothing_is_zero() -> None:
    """A run of no calls has no rate."""
    assert summarise([], 5.0).achieved_rate == 0.0
