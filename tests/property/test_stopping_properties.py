"""What holds of the stop rule and of the pieces for every pool."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rerank.calibrate import Mixture, Weights, combine, probability
from rerank.progress import Aim, Progress
from rerank.stopping import EXCEEDANCES, Line, StopRule, is_certain

_BASES = st.lists(st.floats(-1, 1), min_size=1, max_size=40).map(lambda found: np.sort(np.array(found))[::-1])
_WEIGHTS = st.tuples(st.floats(0, 2), st.floats(0.05, 2)).map(lambda pair: Weights(*pair))
_TOP_K = st.integers(1, 12)


@st.composite
def _lines(draw: st.DrawFn) -> Line:
    margins = sorted(draw(st.lists(st.floats(-9, 9), min_size=len(EXCEEDANCES), max_size=len(EXCEEDANCES))))
    return Line(draw(st.floats(-9, 9)), draw(st.floats(0, 20)), draw(st.floats(0, 1)), tuple(margins))


_RULES = st.builds(StopRule, st.floats(0, 3), st.lists(_lines(), min_size=1, max_size=3).map(tuple))


@st.composite
def _scored(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray]:
    base = draw(_BASES)
    count = draw(st.integers(0, len(base)))
    logits = np.full(len(base), np.nan)
    logits[:count] = draw(st.lists(st.floats(-12, 12), min_size=count, max_size=count))
    return base, logits


@given(_scored(), _WEIGHTS, _TOP_K, _RULES)
def test_expected_gain_is_none_when_all_are_scored_and_unknown_before_the_result_is_full(
    scored: tuple[np.ndarray, np.ndarray], weights: Weights, top_k: int, rule: StopRule
) -> None:
    """In between it is never negative and never undefined."""
    base, logits = scored
    found = rule.expected_gain(base, logits, weights, top_k)
    if not np.isnan(logits).any():
        assert found == 0.0
    elif int((~np.isnan(logits)).sum()) < top_k:
        assert found == math.inf
    else:
        assert found >= 0.0


@given(_scored(), _WEIGHTS, _RULES)
def test_candidates_that_no_logit_can_lift_add_nothing(
    scored: tuple[np.ndarray, np.ndarray], weights: Weights, rule: StopRule
) -> None:
    """When even a certain yes stays below the best, nothing is expected, whatever was learned."""
    base, logits = scored
    known = ~np.isnan(logits)
    if known.all() or not known.any():
        return
    least = combine(base[known], logits[known], weights).max()
    if np.all(weights.first_stage * base[~known] + weights.cross_encoder < least):
        assert rule.expected_gain(base, logits, weights, top_k=1) == 0.0


@given(_scored(), _WEIGHTS, _TOP_K, st.floats(-5, 5), st.floats(0.1, 5))
def test_expected_gain_rises_with_the_predicted_logits(
    scored: tuple[np.ndarray, np.ndarray], weights: Weights, top_k: int, intercept: float, rise: float
) -> None:
    """The more is expected of the others, the later the rule holds."""
    base, logits = scored
    margins = tuple(np.linspace(-1.0, 1.0, len(EXCEEDANCES)))
    low, high = (StopRule(0.0, (Line(at, 1.0, 0.0, margins),)) for at in (intercept, intercept + rise))
    less, more = (rule.expected_gain(base, logits, weights, top_k) for rule in (low, high))
    assert more == less == math.inf or more >= less - 1e-12


def test_expected_gain_is_the_one_that_scoring_would_bring() -> None:
    """With a margin of nothing, the gain is what the result's discounted value rises by when the logit comes out."""
    base, logits = np.array([0.9, 0.8, 0.7]), np.array([2.0, -2.0, np.nan])
    rule = StopRule(0.0, (Line(1.0, 0.0, 0.0, (0.0,) * len(EXCEEDANCES)),))
    weights, discounts = Weights(0.5, 0.5), 1.0 / np.log2([2.0, 3.0])
    before = combine(base[:2], logits[:2], weights)
    after = np.sort(combine(base, np.array([2.0, -2.0, 1.0]), weights))[::-1][:2]
    expected = ((after - before) @ discounts) / ((before - before.min()) @ discounts)
    assert math.isclose(rule.expected_gain(base, logits, weights, 2), expected)


def test_line_is_that_of_the_good_candidates_found_so_far() -> None:
    """None, one, and from then on the last."""
    lines = tuple(Line(float(number), 0.0, 0.0, (0.0,) * len(EXCEEDANCES)) for number in range(3))
    rule = StopRule(0.0, lines)
    for logits, line in (([-1.0], 0), ([-1.0, 2.0], 1), ([3.0, 2.0], 2), ([3.0] * 9, 2)):
        assert rule.line_for(np.array(logits)) is lines[line]


@given(_scored(), _WEIGHTS, _TOP_K, _RULES, st.integers(1, 8), st.floats(0, 500))
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
