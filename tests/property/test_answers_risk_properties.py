"""Properties of the risk control: exact bounds, complaints that only tighten, bytes refused whole."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.answers.risk import RiskControl
from retrieval.answers.risk.bounds import upper_bounds
from retrieval.answers.risk.prior import PRIOR

_RATES = (0.01, 0.05, 0.2)
_SEEDS = st.integers(0, 2**32 - 1)


def _taught(seed: int, count: int) -> RiskControl:
    """A control with labels of mixed quality, some sampled."""
    random = np.random.default_rng(seed)
    control = RiskControl()
    for _ in range(count):
        quality = random.normal()
        features = PRIOR.center + PRIOR.scale * np.sign(PRIOR.weights[:-1]) * (2.0 + quality)
        entry = bytes([int(random.integers(0, 40))])
        share = float(random.choice([1.0, 0.1]))
        correct = bool(random.random() < 1.0 / (1.0 + math.exp(-4.0 - 2.0 * quality)))
        control.learn(entry, control.judge(entry, features, 0.0), features, correct, share)
    return control


def _questions(seed: int) -> list[tuple[bytes, np.ndarray]]:
    random = np.random.default_rng(seed)
    return [
        (bytes([int(random.integers(0, 60))]), PRIOR.center + PRIOR.scale * random.normal(0.0, 2.0, len(PRIOR.center)))
        for _ in range(30)
    ]


@given(errors=st.integers(0, 30), correct=st.integers(1, 400), confidence=st.sampled_from([0.9, 0.95, 0.975, 0.99]))
def test_bound_leaves_the_binomial_just_its_chance(errors: int, correct: int, confidence: float) -> None:
    """At the bound, no more than the seen errors come with just the remaining chance."""
    trials = errors + correct
    bound = float(upper_bounds(np.array([float(errors)]), np.array([float(trials)]), confidence)[0])
    if bound == 1.0:
        bound = 0.5
        assert _at_most(errors, trials, bound) >= 1.0 - confidence - 1e-6
    else:
        assert _at_most(errors, trials, bound) == pytest.approx(1.0 - confidence, abs=1e-5)


@given(
    errors=st.floats(0.0, 50.0), correct=st.floats(1.0, 5_000.0), more=st.floats(0.1, 50.0),
)  # fmt: skip
def test_bound_rises_with_errors_and_falls_with_trials(errors: float, correct: float, more: float) -> None:
    """Further errors raise the bound, further right answers lower it."""
    trials = errors + correct
    counts = np.array([errors, errors + more, errors]), np.array([trials, trials + more, trials + more])
    bound, worse, better = upper_bounds(counts[0], counts[1], 0.95)
    assert better <= bound + 1e-6
    assert worse >= bound - 1e-6


@settings(max_examples=15, deadline=None)
@given(seed=_SEEDS, count=st.integers(50, 700), reports=st.integers(1, 12))
def test_complaints_never_let_anything_through(seed: int, count: int, reports: int) -> None:
    """A question that was refused is refused after complaints, under every bound in use."""
    control = _taught(seed, count)
    control._renew()  # what labels since the last renewal certify is not the complaint's doing
    questions = _questions(seed)
    before = [control.judge(entry, features, rate).serve for entry, features in questions for rate in _RATES]
    for entry, features in questions[:reports]:
        control.report(entry, control.judge(entry, features, 0.05), features)
    after = [control.judge(entry, features, rate).serve for entry, features in questions for rate in _RATES]
    assert all(was or not now for was, now in zip(before, after, strict=True))


@settings(max_examples=15, deadline=None)
@given(seed=_SEEDS, count=st.integers(0, 700))
def test_stricter_bounds_serve_no_more(seed: int, count: int) -> None:
    """Nothing is served under a bound of zero; and judging changes nothing."""
    control = _taught(seed, count)
    stored = control.to_bytes()
    for entry, features in _questions(seed):
        judgement = control.judge(entry, features, 0.0)
        assert not judgement.serve
        assert judgement == control.judge(entry, features, 0.0)
        assert 0.0 <= judgement.error_estimate <= 1.0
        assert 0.0 < judgement.error_bound <= 1.0
    assert control.to_bytes() == stored


@settings(max_examples=15, deadline=None)
@given(seed=_SEEDS, count=st.integers(0, 300))
def test_stored_control_judges_the_same(seed: int, count: int) -> None:
    """A control and what was made of its bytes agree in everything, and write the same bytes."""
    control = _taught(seed, count)
    control._renew()
    back = RiskControl.from_bytes(control.to_bytes())
    for entry, features in _questions(seed):
        for rate in _RATES:
            assert back.judge(entry, features, rate) == control.judge(entry, features, rate)
    assert back.to_bytes() == control.to_bytes()


@settings(max_examples=40, deadline=None)
@given(place=st.floats(0.0, 0.999), flip=st.integers(1, 255), cut=st.booleans())
def test_damaged_bytes_are_refused(place: float, flip: int, cut: bool) -> None:
    """A changed byte anywhere, or a missing end, is refused whole."""
    stored = bytearray(_taught(1, 20).to_bytes())
    spot = int(place * len(stored))
    if cut:
        del stored[spot:]
    else:
        stored[spot] ^= flip
    with pytest.raises(ValueError, match=r"damaged|format"):
        RiskControl.from_bytes(bytes(stored))


def _at_most(errors: int, trials: int, rate: float) -> float:
    return sum(math.comb(trials, one) * rate**one * (1.0 - rate) ** (trials - one) for one in range(errors + 1))
