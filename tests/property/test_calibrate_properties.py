"""What holds for every pool of candidates."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rerank.calibrate import Weights, combine, probability, rank_from_logits

_LOGITS = st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=30).map(lambda found: np.array(found, dtype=np.float64))


@given(_LOGITS, st.floats(0, 2), st.floats(0, 2))
def test_score_never_depends_on_the_pool(logits: np.ndarray, first: float, cross: float) -> None:
    """RER-07: a candidate's score alone is its score among any others."""
    scores, weights = np.linspace(-1, 1, len(logits)), Weights(first, cross)
    together = combine(scores, logits, weights)
    alone = [combine(scores[at : at + 1], logits[at : at + 1], weights)[0] for at in range(len(logits))]
    np.testing.assert_array_equal(together, alone)


@given(_LOGITS)
def test_probability_rises_with_the_logit(logits: np.ndarray) -> None:
    """A higher logit never has a lower probability, and all lie between 0 and 1."""
    found = probability(np.sort(logits))
    assert np.all(np.diff(found) >= 0.0)
    assert np.all((found >= 0.0) & (found <= 1.0))


@given(_LOGITS)
def test_order_is_a_permutation_with_falling_logits(logits: np.ndarray) -> None:
    """Every candidate is ranked once, and a better logit is never ranked lower."""
    ids = [f"c{number}" for number in range(len(logits))]
    order = rank_from_logits(logits, np.arange(len(logits)), ids)
    assert sorted(order.tolist()) == list(range(len(logits)))
    assert np.all(np.diff(logits[order]) <= 0.0)
