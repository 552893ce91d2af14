"""From logits to scores and an order."""

from __future__ import annotations

import numpy as np

from rerank.calibrate import Weights, combine, probability, rank, rank_from_logits

_IDS = ("d0", "d1", "d2")


def _array(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_order_and_scores_belong_to_the_right_passages() -> None:
    """RER-01: scores that arrive for d0, d1, d2 put each under its own name."""
    scores = _array(0.5, 0.1, 0.9)
    order = rank(scores, scores, np.arange(3), _IDS)
    assert [_IDS[position] for position in order] == ["d2", "d0", "d1"]
    assert scores[order].tolist() == [0.9, 0.5, 0.1]


def test_saturated_logits_keep_their_order() -> None:
    """RER-08: what is nearly certain three times over is still ordered by how certain."""
    assert rank_from_logits(_array(18.0, 19.5, 21.0), np.arange(3), _IDS).tolist() == [2, 1, 0]
    logits = _array(40.0, 50.0, 60.0)
    assert len(set(probability(logits).tolist())) == 1
    assert rank(probability(logits), logits, np.arange(3), _IDS).tolist() == [2, 1, 0]


def test_ties_are_broken_by_previous_rank_then_by_id() -> None:
    """RER-08: equal logits never leave the order to chance."""
    equal = _array(1.0, 1.0, 1.0)
    assert rank_from_logits(equal, np.array([2, 0, 1]), _IDS).tolist() == [1, 2, 0]
    assert rank_from_logits(equal, np.array([0, 0, 0]), ("b", "c", "a")).tolist() == [2, 0, 1]


def test_probability_neither_overflows_nor_leaves_its_range() -> None:
    """Logits of any size are fine, in float64."""
    found = probability(_array(-1e6, -700.0, 0.0, 700.0, 1e6))
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, [0.0, 0.0, 0.5, 1.0, 1.0], atol=1e-300)


def test_combined_score_is_a_weighted_sum_of_raw_scores() -> None:
    """Each weight says how much its opinion counts."""
    found = combine(_array(0.4, 0.8), _array(0.0, 2.0), Weights(first_stage=0.5, cross_encoder=2.0))
    np.testing.assert_allclose(found, [0.2 + 1.0, 0.4 + 2.0 / (1.0 + np.exp(-2.0))])
