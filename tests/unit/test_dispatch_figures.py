"""Figures of late, and budgets of extra requests."""

from __future__ import annotations

import math
from collections import deque

from hypothesis import given
from hypothesis import strategies as st

from retrieval.dispatch.figures import Recent
from retrieval.dispatch.spending import RESERVE, HedgeBudget, RetryBudget


class Clock:
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


@given(
    st.lists(st.tuples(st.integers(0, 10), st.integers(0, 50)), max_size=60),
    st.floats(0.01, 1.0),
)
def test_recent_is_what_is_neither_old_nor_pushed_out(steps: list[tuple[int, int]], share: float) -> None:
    """Count, mean and quantiles are those of the newest values within the age, whatever came before."""
    clock = Clock()
    recent, oracle = Recent(8, 20, clock), deque[tuple[int, int]](maxlen=8)
    for pause, value in steps:
        clock.now_ns += pause
        recent.add(value)
        oracle.append((clock.now_ns, value))
        kept = sorted(value for at, value in oracle if at >= clock.now_ns - 20)
        assert len(recent) == len(kept)
        assert recent.mean == sum(kept) / len(kept)
        assert recent.quantile(share) == kept[max(0, math.ceil(share * len(kept)) - 1)]


def test_recent_knows_nothing_when_all_is_old() -> None:
    """Figures end with the traffic that they are of."""
    clock = Clock()
    recent = Recent(8, 20, clock)
    recent.add(5)
    clock.now_ns = 21
    assert (len(recent), recent.mean, recent.quantile(0.5)) == (0, 0.0, 0)


def test_retries_are_a_share_of_requests() -> None:
    """Beyond the reserve, each request earns its share, and what is saved is bounded."""
    budget = RetryBudget(lambda: 0.1, Clock())
    assert [budget.take() for _ in range(RESERVE + 1)] == [True] * RESERVE + [False]
    taken = 0
    for _ in range(1000):
        budget.count()
        taken += budget.take()
    assert 98 <= taken <= 100
    for _ in range(100_000):
        budget.count()
    assert sum(budget.take() for _ in range(1000)) == 20


def test_retries_of_a_quiet_service_come_back_with_time() -> None:
    """So many in ten seconds, however few requests there are."""
    clock = Clock()
    budget = RetryBudget(lambda: 0.01, clock)
    for _ in range(3):
        assert sum(budget.take() for _ in range(10)) == RESERVE
        clock.now_ns += 11 * 10**9


def test_retries_can_be_forbidden() -> None:
    """A share of 0 leaves no reserve."""
    assert not RetryBudget(lambda: 0.0, Clock()).take()


@given(st.lists(st.integers(0, 3), min_size=1, max_size=3000), st.sampled_from([0.0, 0.02, 0.05, 0.5]))
def test_hedges_never_exceed_their_share(wanted: list[int], share: float) -> None:
    """At no time are more than that share of all requests hedged."""
    budget = HedgeBudget(lambda: share)
    taken = 0
    for requests, hedges in enumerate(wanted, 1):
        budget.count()
        taken += sum(budget.take() for _ in range(hedges))
        assert taken <= share * requests


def test_hedges_of_any_thousand_requests_are_bounded() -> None:
    """Hedges that were not sent are not saved up for a bad hour."""
    budget = HedgeBudget(lambda: 0.05)
    for _ in range(100_000):
        budget.count()
    assert sum(budget.take() for _ in range(1000)) == 50
    later = 0
    for _ in range(999):
        budget.count()
        later += budget.take()
    assert later == 0
