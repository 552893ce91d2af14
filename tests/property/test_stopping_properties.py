"""What holds of the stop rule and of the pieces for every pool."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rerank.calibrate import Mixture, Weights, combine, probability
from rerank.progress import Aim, Progress
from rerank.stopping import EXCEEDANCES, StopRule, is_certain, needed_logits

_BASES = st.lists(st.floats(-1, 1), min_size=1, max_size=40).map(lambda found: np.sort(np.array(found))[::-1])
_WEIGHTS = st.tuples(st.floats(0, 2), st.floats(0.05, 2)).map(lambda pair: Weights(*pair))
_TOP_K = st.integers(1, 12)


@st.composite
def _rules(draw: st.DrawFn) -> StopRule:
    margins = sorted(draw(st.lists(st.floats(-9, 9), min_size=len(EXCEEDANCES), max_size=len(EXCEEDANCES))))
    numbers = [draw(st.floats(low, high)) for low, high in ((0, 3), (-9, 9), (0, 20), (0.1, 9))]
    return StopRule(*numbers, tuple(margins))


@st.composite
def _scored(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    base = draw(_BASES)
    count = draw(st.integers(0, len(base)))
    logits = np.full(len(base), np.nan)
    logits[:count] = draw(st.lists(st.floats(-12, 12), min_size=count, max_size=count))
    return base, logits


@given(_scored(), _WEIGHTS, _TOP_K, _rules())
def test_expected_entrants_are_bounded_by_the_unscored(
    scored: tuple[np.ndarray, np.ndarray], weights: Weights, top_k: int, rule: StopRule
) -> None:
    """Never more than there are, none when all are scored, and unknown while the result is not full."""
    base, logits = scored
    found = rule.expected_entrants(base, logits, weights, top_k)
    waiting = int(np.isnan(logits).sum())
    if not waiting:
        assert found == 0.0
    elif len(base) - waiting < top_k:
        assert found == math.inf
    else:
        assert 0.0 <= found <= waiting


@given(_BASES, st.floats(-1, 2), _WEIGHTS)
def test_needed_logit_is_the_one_that_reaches_the_least(base: np.ndarray, least: float, weights: Weights) -> None:
    """At the needed logit a candidate's score is the least; infinite ones say never and always."""
    needed = needed_logits(base, least, weights)
    best, worst = (weights.first_stage * base + weights.cross_encoder * limit for limit in (1.0, 0.0))
    assert np.all(best[needed == np.inf] <= least + 1e-9)
    assert np.all(worst[needed == -np.inf] >= least - 1e-9)
    finite = np.isfinite(needed)
    np.testing.assert_allclose(combine(base[finite], needed[finite], weights), least, atol=1e-6)


@given(_scored(), _WEIGHTS, _rules())
def test_candidates_that_no_logit_can_lift_are_excluded_exactly(
    scored: tuple[np.ndarray, np.ndarray], weights: Weights, rule: StopRule
) -> None:
    """When even a certain yes stays below the best, nobody is expected, whatever was learned."""
    base, logits = scored
    known = ~np.isnan(logits)
    if known.all() or not known.any():
        return
    least = combine(base[known], logits[known], weights).max()
    if np.all(weights.first_stage * base[~known] + weights.cross_encoder < least):
        assert rule.expected_entrants(base, logits, weights, top_k=1) == 0.0


@given(_scored(), _WEIGHTS, _TOP_K, _rules(), st.integers(1, 8), st.floats(0, 500))
def test_pieces_are_best_first_within_what_is_affordable_and_end(
    scored: tuple[np.ndarray, np.ndarray],
    weights: Weights,
    top_k: int,
    rule: StopRule,
    size: int,
    affordable: float,
) -> None:
    """Each pair at most once, in order, never above the tokens that are left; a partial result is never called done."""
    base, known = scored
    tokens = [10 + place % 3 for place in range(len(base))]
    progress = Progress(base, known, tokens, Aim(top_k, weights, rule))
    begun: list[int] = []
    while piece := progress.next_piece(size, affordable):
        affordable -= sum(tokens[place] for place in piece)
        assert affordable >= 0.0
        begun += piece
        progress.note(piece, np.zeros(len(piece)))
    assert begun == np.flatnonzero(np.isnan(known)).tolist()[: len(begun)]
    assert (progress.stop == "all") == (not np.isnan(progress.logits).any())
    if progress.stop == "deadline" and begun:
        assert progress.covered


@given(_BASES, st.floats(0, 1))
def test_certainty_is_a_lead_of_the_best(base: np.ndarray, margin: float) -> None:
    """No gate without a margin, none for a single candidate."""
    assert not is_certain(base, 0.0)
    assert is_certain(base, margin) == (margin > 0 and len(base) > 1 and base[0] - base[1] >= margin)


@given(_BASES, st.floats(0, 2), st.floats(0.01, 2), st.floats(0.01, 2))
def test_mixture_is_a_mean_and_depends_on_the_candidate_alone(
    first: np.ndarray, first_weight: float, late_weight: float, cross_weight: float
) -> None:
    """RER-07: equal opinions give that score back, shares sum to 1, and neighbours change nothing."""
    mixture, late = Mixture(first_weight, late_weight, cross_weight), first[::-1].copy()
    together = mixture.before(first, late)
    alone = [mixture.before(first[at : at + 1], late[at : at + 1])[0] for at in range(len(first))]
    np.testing.assert_array_equal(together, alone)
    np.testing.assert_allclose(mixture.before(first, first), first, atol=1e-9)
    assert mixture.before(first, None) is first
    for heard in (True, False):
        weights = mixture.weights(late_heard=heard)
        assert math.isclose(weights.first_stage + weights.cross_encoder, 1.0)
        logits = np.full(len(first), 2.0)
        scores = combine(probability(logits), logits, weights)
        np.testing.assert_allclose(scores, probability(logits))
