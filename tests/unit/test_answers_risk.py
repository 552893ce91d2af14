"""The risk control: nothing without evidence, no more than the evidence certifies, complaints only tighten."""

from __future__ import annotations

import math

import numpy as np
import pytest

from encoders.types import EncodedQuery
from retrieval.answers.guard import compare, read_facts
from retrieval.answers.risk import RiskControl
from retrieval.answers.risk.bounds import least_trials, upper_bounds
from retrieval.answers.risk.certificate import CONFIDENCE, Certificate
from retrieval.answers.risk.entries import EntryOffsets
from retrieval.answers.risk.evidence import STRATA, STRATUM_LABELS, EvidenceWindow, Ranked
from retrieval.answers.risk.prior import PRIOR
from retrieval.answers.risk.watch import Watch
from retrieval.answers.similarity import FEATURES, features_of

_GOOD = PRIOR.center + 2.0 * PRIOR.scale * np.sign(PRIOR.weights[:-1])
_POOR = PRIOR.center - 2.0 * PRIOR.scale * np.sign(PRIOR.weights[:-1])


def _teach(control: RiskControl, count: int, wrong_every: int = 0, features: object = _GOOD) -> None:
    for number in range(count):
        entry = number.to_bytes(4, "little")
        judgement = control.judge(entry, np.asarray(features), 0.0)
        control.learn(entry, judgement, np.asarray(features), not wrong_every or number % wrong_every != 0)


def test_control_serves_nothing_before_there_is_evidence() -> None:
    """A similar question is not served until labels bound the error rate, however alike it is."""
    judgement = RiskControl().judge(b"entry", _GOOD, 0.5)
    assert not judgement.serve
    assert (judgement.error_bound, judgement.labels) == (1.0, 0)


@pytest.mark.parametrize("rate", [0.005, 0.01, 0.02, 0.1])
def test_control_serves_once_faultless_labels_suffice(rate: float) -> None:
    """Without an error, hundreds of labels certify, more for a lower bound, never fewer than a lone test needs."""
    control = RiskControl()
    first = 0
    while not control.judge(b"new", _GOOD, rate).serve:
        _teach(control, 1)
        first += 1
    assert least_trials(rate, CONFIDENCE) < first <= 1.5 * least_trials(rate, 0.95) + 20


def test_control_refuses_where_labels_are_worse_than_the_bound() -> None:
    """Two percent of errors are never served under a bound of one."""
    control = RiskControl()
    _teach(control, 2_000, wrong_every=50)
    assert not control.judge(b"new", _GOOD, 0.01).serve
    assert control.judge(b"new", _GOOD, 0.05).serve


def test_control_takes_a_changed_bound_at_once() -> None:
    """A bound of zero serves nothing and is no bound left unset, whatever was served a moment ago (case SEM-04)."""
    control = RiskControl()
    _teach(control, 600)
    assert [control.judge(b"new", _GOOD, rate).serve for rate in (0.02, 0.0, 0.02)] == [True, False, True]


def test_control_tells_whether_anything_can_be_served() -> None:
    """Without a certified threshold no question needs to be judged; and a bound of zero never has one."""
    control = RiskControl()
    assert not control.serves(0.1)
    _teach(control, 100)
    assert control.serves(0.1)
    assert not control.serves(0.0)


def test_control_keeps_apart_what_scores_low() -> None:
    """Evidence for close questions does not serve distant ones."""
    control = RiskControl()
    _teach(control, 600)
    _teach(control, 100, wrong_every=1, features=_POOR)
    assert control.judge(b"new", _GOOD, 0.02).serve
    assert not control.judge(b"new", _POOR, 0.02).serve


def test_control_learns_a_threshold_for_each_entry() -> None:
    """An entry whose own labels are wrong scores lower than its neighbours on the same features."""
    control = RiskControl()
    for number in range(200):
        for entry, correct in ((b"wide", True), (b"narrow", number % 2 == 0)):
            control.learn(entry, control.judge(entry, _GOOD, 0.0), _GOOD, correct)
    narrow, fresh = control.judge(b"narrow", _GOOD, 0.0), control.judge(b"fresh", _GOOD, 0.0)
    assert narrow.score < fresh.score
    control.forget(b"narrow")
    assert control.judge(b"narrow", _GOOD, 0.0).score > narrow.score


def test_control_stops_when_served_answers_turn_wrong() -> None:
    """A bound that is broken on served answers drops the evidence, and serving stops until it is gathered anew."""
    control = RiskControl()
    _teach(control, 600)
    while control.judge(b"new", _GOOD, 0.02).serve:
        control.learn(b"new", control.judge(b"new", _GOOD, 0.02), _GOOD, correct=False, sampled_share=0.05)
    assert not control.judge(b"other", _GOOD, 0.02).serve
    _teach(control, 2_000)
    assert control.judge(b"other", _GOOD, 0.02).serve


def test_complaints_end_serving() -> None:
    """Reports of bad answers count though they are no sample."""
    control = RiskControl()
    _teach(control, 600)
    served = control.judge(b"new", _GOOD, 0.02)
    assert served.serve
    for number in range(30):
        control.report(number.to_bytes(4, "little"), served, _GOOD)
    assert not control.judge(b"new", _GOOD, 0.02).serve
    assert control.figures.served_errors == 30
    assert control.figures.alarms > 0


def test_complaint_lowers_its_entry() -> None:
    """One report makes its entry less trusted at once."""
    control = RiskControl()
    _teach(control, 200)
    before = control.judge(b"entry", _GOOD, 0.02)
    control.report(b"entry", before, _GOOD)
    assert control.judge(b"entry", _GOOD, 0.02).score < before.score


@pytest.mark.parametrize("share", [0.0, -0.1, 1.5, math.nan])
def test_control_refuses_an_impossible_share(share: float) -> None:
    """A sampling share outside of (0, 1] is the caller's mistake."""
    control = RiskControl()
    with pytest.raises(ValueError, match="sampled_share"):
        control.learn(b"entry", control.judge(b"entry", _GOOD, 0.0), _GOOD, correct=True, sampled_share=share)


def test_control_goes_on_after_a_restart() -> None:
    """What was learned comes back from its bytes: the same judgements, the same figures, the same further learning."""
    control = RiskControl()
    _teach(control, 700, wrong_every=90)
    control.report(b"entry", control.judge(b"entry", _GOOD, 0.1), _GOOD)
    back = RiskControl.from_bytes(control.to_bytes())
    assert back.figures == control.figures
    for one in (control, back):
        one._renew()
        _teach(one, 50, wrong_every=7)
    for entry in (b"entry", b"new", (3).to_bytes(4, "little")):
        assert back.judge(entry, _GOOD, 0.1).score == pytest.approx(control.judge(entry, _GOOD, 0.1).score)
        assert back.judge(entry, _GOOD, 0.1).serve == control.judge(entry, _GOOD, 0.1).serve


def test_control_refuses_bytes_of_another_format() -> None:
    """A format that this version does not know is refused, as are bytes that are none of ours."""
    stored = RiskControl().to_bytes()
    with pytest.raises(ValueError, match="format 9"):
        RiskControl.from_bytes(stored[:4] + (9).to_bytes(2, "little") + stored[6:])
    with pytest.raises(ValueError, match="damaged"):
        RiskControl.from_bytes(b"")


def test_control_is_bounded() -> None:
    """The window and the entries take no more room than they were given."""
    control = RiskControl(entry_limit=10)
    _teach(control, STRATUM_LABELS + 50)
    assert control.figures.entries == 10
    window = EvidenceWindow(len(PRIOR.weights))
    assert len(window) == 0
    assert control.figures.labels <= STRATA * STRATUM_LABELS


def test_sampled_labels_weigh_their_stratum_not_themselves() -> None:
    """Sampled labels leave the others far more of an effective number than the 76 of bare inverse shares."""
    control = RiskControl()
    _teach(control, 400)
    for number in range(20):
        entry = number.to_bytes(4, "little")
        control.learn(entry, control.judge(entry, _GOOD, 0.0), _GOOD, correct=True, sampled_share=0.05)
    _teach(control, 10)
    assert control.judge(b"new", _GOOD, 0.02).labels > 150


def test_certificate_passes_over_an_early_error() -> None:
    """A single error at the very top does not keep the rest from being certified."""
    errors = np.zeros(2_000)
    errors[3] = 1.0
    ranked = Ranked(np.linspace(9.0, 1.0, 2_000), np.ones(2_000), errors, np.ones(2_000))
    assert Certificate.of(ranked).threshold(0.01) == pytest.approx(1.0)


def test_certificate_never_parts_equal_scores() -> None:
    """What scores the same is served together or not at all."""
    scores = np.repeat([3.0, 1.0], [40, 400])
    certificate = Certificate.of(Ranked(scores, np.ones(440), np.zeros(440), np.ones(440)))
    assert certificate.scores.tolist() == [3.0, 1.0]
    assert certificate.trials.tolist() == [40.0, 440.0]


def test_entry_offsets_find_how_much_entries_differ() -> None:
    """Entries that contradict their features strongly make the prior of the next entry wider."""
    offsets = EntryOffsets(1_000)
    before = offsets.of(b"unknown").variance
    for number in range(60):
        entry = bytes([number])
        for _ in range(12):
            offsets.learn(entry, 0.0, correct=number % 2 == 0)
    assert offsets.of(b"unknown").variance > before


def test_watch_is_quiet_within_the_bound_and_loud_beyond() -> None:
    """One error in a hundred is no alarm under two percent; one in five is, and soon."""
    watch = Watch()
    assert not any(watch.add(0.02, correct=number % 100 != 0) for number in range(5_000))
    assert any(watch.add(0.02, correct=number % 5 != 0) for number in range(100))


def test_bounds_are_those_of_the_binomial() -> None:
    """With no error in n trials the bound is 1 - (1 - confidence)^(1/n); and 1 for less than a trial."""
    trials = np.array([0.5, 30.0, 149.0, 5_000.0])
    bounds = upper_bounds(np.zeros(4), trials, 0.95)
    assert bounds[0] == 1.0
    assert bounds[1:] == pytest.approx(1.0 - 0.05 ** (1.0 / trials[1:]))
    assert least_trials(0.02, 0.95) == pytest.approx(148.28, abs=0.01)


def _encoded(vector: list[float], tokens: list[list[float]] | None) -> EncodedQuery:
    unit = np.array(vector, dtype=np.float32)
    return EncodedQuery(unit / np.linalg.norm(unit), None if tokens is None else np.array(tokens, dtype=np.float32))


def test_features_of_equal_questions_are_the_closest() -> None:
    """A question is closest to itself, both ways."""
    facts = read_facts("how do I reset my password")
    same = _encoded([1.0, 0.0], [[0.6, 0.0], [0.0, 0.4]])
    other = _encoded([0.8, 0.6], [[0.9, 0.1]])
    itself = dict(zip(FEATURES, features_of(same, same, compare(facts, facts)), strict=True))
    apart = dict(zip(FEATURES, features_of(same, other, compare(facts, facts)), strict=True))
    for name in ("cosine", "asked_in_stored", "stored_in_asked", "worst_asked", "worst_stored"):
        assert itself[name] == pytest.approx(-math.log(0.02), abs=1e-4)
        assert apart[name] < itself[name]
    assert itself["unlike_asked"] == 0.0


@pytest.mark.parametrize("tokens", [None, []])
def test_features_stand_without_token_vectors(tokens: list[list[float]] | None) -> None:
    """A model without token vectors, and a question without tokens that say anything, leave finite figures."""
    facts = read_facts("what")
    bare = EncodedQuery(
        np.array([0.0, 1.0], dtype=np.float32), None if tokens is None else np.zeros((0, 2), dtype=np.float32)
    )
    features = features_of(bare, _encoded([1.0, 1.0], [[1.0, 0.0]]), compare(facts, facts))
    assert features.shape == (len(FEATURES),)
    assert bool(np.isfinite(features).all())


def test_prior_fits_the_features() -> None:
    """The shipped numbers belong to the features that there are, and to the bias."""
    assert len(PRIOR.center) == len(PRIOR.scale) == len(FEATURES)
    assert len(PRIOR.weights) == len(PRIOR.precision) == len(FEATURES) + 1
    assert bool((PRIOR.scale > 0).all())
