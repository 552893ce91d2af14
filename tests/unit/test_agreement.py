"""How far two computations of the same model agree."""

from __future__ import annotations

import numpy as np
import pytest

from encoders.catalog.agreement import cosines, kendall_tau, neighbour_agreement, pearson


@pytest.mark.parametrize(
    ("first", "second", "tau"),
    [
        ([1, 2, 3, 4], [10, 20, 30, 40], 1.0),
        ([1, 2, 3, 4], [4, 3, 2, 1], -1.0),
        ([1, 2, 3, 4], [1, 2, 4, 3], 4 / 6),
        ([1, 1, 2], [1, 2, 3], 2 / np.sqrt(2 * 3)),
        ([1], [5], 1.0),
        ([2, 2], [3, 3], 1.0),
        ([2, 2], [3, 4], 0.0),
    ],
)
def test_kendall_tau_counts_pairs(first: list[float], second: list[float], tau: float) -> None:
    """Agreeing less disagreeing pairs, over those that can be told apart."""
    assert kendall_tau(np.array(first), np.array(second)) == pytest.approx(tau)


def test_pearson_is_blind_to_scale_and_not_to_order() -> None:
    """A constant is like nothing but itself."""
    values = np.array([1.0, 2.0, 4.0])
    assert pearson(values, 3 * values - 7) == pytest.approx(1.0)
    assert pearson(values, -values) == pytest.approx(-1.0)
    assert pearson(values, np.ones(3)) == 0.0
    assert pearson(np.ones(3), np.ones(3)) == 1.0


def test_vectors_agree_with_themselves_and_less_with_noisy_ones() -> None:
    """Cosines and neighbours are those of the rows."""
    draw = np.random.default_rng(3)
    vectors = draw.normal(size=(12, 8)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    noisy = vectors + 0.3 * draw.normal(size=vectors.shape).astype(np.float32)
    noisy /= np.linalg.norm(noisy, axis=1, keepdims=True)
    assert cosines(vectors, vectors) == pytest.approx(np.ones(12), abs=1e-6)
    assert neighbour_agreement(vectors, vectors) == pytest.approx(1.0)
    assert cosines(vectors, noisy).max() < 0.999
    assert 0.2 < neighbour_agreement(vectors, noisy) < 0.95
