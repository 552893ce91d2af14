"""The figures of `bench.complexity`, against small cases worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench._common.ranking_curves import fit_logistic, roc_area


def test_area_counts_pairs_in_order() -> None:
    """Of the four pairs of a positive and a negative, two are in order, one is not, and one is a tie."""
    scores = np.array([0.9, 0.5, 0.7, 0.5])
    positive = np.array([True, True, False, False])
    assert roc_area(scores, positive) == pytest.approx((2 + 0.5) / 4)
    assert roc_area(-scores, positive) == pytest.approx(1 - 2.5 / 4)


def test_area_of_one_class_is_not_a_number() -> None:
    """Without two classes there is nothing to tell apart."""
    assert math.isnan(roc_area(np.array([0.1, 0.2]), np.array([True, True])))


def test_logistic_fit_finds_the_odds_of_groups() -> None:
    """With one binary input the fit is the log odds of each group, weights counted."""
    inputs = np.array([[0.0], [0.0], [1.0], [1.0]])
    positive = np.array([True, False, True, False])
    slope, intercept = fit_logistic(inputs, positive, np.array([1.0, 3.0, 4.0, 2.0]))
    assert intercept == pytest.approx(math.log(1 / 3), abs=1e-4)
    assert slope == pytest.approx(math.log(2) - math.log(1 / 3), abs=1e-4)
