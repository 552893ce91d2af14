"""The bound that lets a question reuse another one's candidates."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from bench.reuse import certify


@given(st.integers(0, 10_000), st.floats(0.0, 0.2))
def test_certified_pool_holds_the_best_of_all(seed: int, distance: float) -> None:
    """Whenever the bound certifies a pool, no passage outside it is among the ten best for the new question."""
    rng = np.random.default_rng(seed)
    passages = rng.normal(size=(200, 4)).astype(np.float32)
    passages /= np.linalg.norm(passages, axis=1, keepdims=True)
    before, step = rng.normal(size=4), rng.normal(size=4)
    before /= np.linalg.norm(before)
    now = before + distance * step
    now /= np.linalg.norm(now)
    scores = passages @ before
    pool = np.argsort(-scores)[:60]
    if certify(passages[pool], float(scores[pool].min()), now, float(now @ before)):
        best = np.argsort(-(passages @ now))[:10]
        assert set(best) <= set(pool)


def test_the_same_question_certifies_its_own_pool() -> None:
    """With no angle between the questions the edge itself is the bound."""
    passages = np.eye(20, dtype=np.float32)
    question = (np.arange(20, 0, -1) / np.linalg.norm(np.arange(1, 21))).astype(np.float32)
    assert certify(passages[:15], float(question[14]), question, 1.0)
    assert not certify(passages[:9], float(question[8]), question, 1.0)
