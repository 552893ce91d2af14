"""Bootstrap intervals and quantiles."""

from __future__ import annotations

import numpy as np
import pytest

from bench._common.statistics import mean_difference, paired_difference, quantiles


def test_paired_difference_covers_the_mean_and_is_repeatable() -> None:
    """The same figures give the same interval."""
    random = np.random.default_rng(3)
    ours, theirs = random.random(200) + 0.1, random.random(200)
    first = paired_difference(ours.tolist(), theirs.tolist(), resamples=2000)
    assert first == paired_difference(ours.tolist(), theirs.tolist(), resamples=2000)
    assert first.low < first.mean < first.high
    assert first.mean == pytest.approx(float((ours - theirs).mean()))


def test_paired_difference_has_the_width_that_theory_gives() -> None:
    """Close to plus and minus 1.96 standard errors for a large sample."""
    difference = np.random.default_rng(5).normal(0.0, 1.0, 2_000)
    found = paired_difference(difference.tolist(), [0.0] * len(difference), resamples=4000)
    width = 2 * 1.96 * difference.std() / np.sqrt(len(difference))
    assert found.high - found.low == pytest.approx(width, rel=0.08)


def test_paired_difference_of_equal_arms_is_not_certain() -> None:
    """An interval of zero width at zero is no difference; a constant gain is one."""
    assert not paired_difference([0.5, 0.7], [0.5, 0.7]).certain
    assert paired_difference([0.6, 0.8], [0.5, 0.7]).certain


def test_mean_difference_weighs_sets_equally() -> None:
    """A large set does not drown a small one."""
    found = mean_difference([np.full(1000, 0.1), np.full(10, 0.3)], resamples=100)
    assert found.mean == pytest.approx(0.2)


@pytest.mark.parametrize("differences", [[], [np.empty(0)]])
def test_mean_difference_without_queries_is_refused(differences: list[np.ndarray]) -> None:
    """An interval around nothing would be made up."""
    with pytest.raises(ValueError, match="at least one query"):
        mean_difference(differences)


def test_quantiles_are_in_milliseconds() -> None:
    """Times come in nanoseconds."""
    found = quantiles([number * 1_000_000 for number in range(1, 101)])
    assert found.p50_ms == pytest.approx(50.5)
    assert found.max_ms == 100.0
    assert found.count == 100
    assert quantiles([]).count == 0
