"""The pure functions of the risk tool: sets, splits, curves, intervals, the fit."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from bench._common.risk_cases import Cases, nearest_pairs
from bench._common.risk_prior import fit_prior, show_prior
from bench._common.risk_replay import Served, curve_of, replay, serve_fixed, tuned_threshold
from bench._common.risk_sets import CachedQuestions, Pair, read_cached_questions, read_pairs, split
from bench._common.risk_streams import StreamLaw, run_stream
from bench._common.risk_tables import interval
from encoders.types import EncodedQuery
from retrieval.answers.risk.prior import PRIOR


def _cases(cosines: list[float], correct: list[bool]) -> Cases:
    count = len(cosines)
    features = np.tile(PRIOR.center, (count, 1))
    features[:, 0] += np.array(cosines)
    entries = [place.to_bytes(2, "little") for place in range(count)]
    return Cases(entries, features, np.array(cosines), np.array(correct), np.zeros(count, dtype=np.bool_))


def test_pairs_are_read_and_equal_questions_left_out(tmp_path: Path) -> None:
    """The first column is the stored question, the second the asked one; quotation marks are text."""
    file = tmp_path / "pairs.tsv"
    file.write_text('text_a\ttext_b\tlabel\na "b\tc\t1\nsame\tsame\t1\nd\te\t0\n', encoding="utf-8")
    assert read_pairs(file) == [Pair("c", 'a "b', correct=True), Pair("e", "d", correct=False)]


def test_cached_questions_keep_all_that_labels_name(tmp_path: Path) -> None:
    """Stored questions that a label names are always kept; others fill up to the count."""
    stored = [{"_id": f"q{number}", "text": f"question {number}"} for number in range(20)]
    (tmp_path / "corpus.jsonl").write_text("\n".join(map(json.dumps, stored)), encoding="utf-8")
    (tmp_path / "queries.jsonl").write_text(json.dumps({"_id": "a", "text": "asked"}), encoding="utf-8")
    miss = {"_id": "m", "text": "missed", "metadata": {"near_misses": ["q4"]}}
    (tmp_path / "misses.jsonl").write_text(json.dumps(miss), encoding="utf-8")
    (tmp_path / "qrels").mkdir()
    (tmp_path / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\na\tq3\t1\na\tq5\t0\n", encoding="utf-8")
    read = read_cached_questions(tmp_path, 6)
    assert len(read.stored) == 6
    assert {"question 3", "question 4"} <= set(read.stored)
    assert read.asked == {"asked": frozenset({"question 3"}), "missed": frozenset()}


def test_split_never_parts_a_question() -> None:
    """All pairs of an asked question are in one half, and the order does not depend on that of the file."""
    pairs = [Pair(f"asked {number % 40}", f"stored {number}", correct=True) for number in range(200)]
    tune, test = split(pairs)
    assert len(tune) + len(test) == 200
    assert not {pair.asked for pair in tune} & {pair.asked for pair in test}
    assert split(pairs[::-1]) == (tune, test)


def test_nearest_pairs_pass_over_the_question_itself() -> None:
    """The nearest stored question of other wording is judged, by what means the same."""
    encoded = {
        text: EncodedQuery(np.array(vector, dtype=np.float32), None)
        for text, vector in (("a", [1.0, 0.0]), ("b", [0.8, 0.6]), ("c", [0.0, 1.0]))
    }
    questions = CachedQuestions(["a", "b", "c"], {"a": frozenset({"b"}), "c": frozenset()})
    assert nearest_pairs(questions, encoded) == [Pair("a", "b", correct=True), Pair("c", "b", correct=False)]


def test_curve_serves_equal_scores_together() -> None:
    """A threshold cannot part equal scores, so the curve has one level for them."""
    curve = curve_of(np.array([0.9, 0.8, 0.8, 0.7]), np.array([True, True, False, True]))
    assert curve.hits.tolist() == [1, 3, 4]
    assert curve.rates.tolist() == pytest.approx([0.0, 1 / 3, 0.25])
    assert [curve.most(rate) for rate in (0.0, 0.25, 1 / 3)] == [1, 4, 4]


def test_fixed_threshold_is_tuned_to_serve_most() -> None:
    """The lowest threshold whose error rate is allowed is taken, and none when none is."""
    cases = _cases([0.9, 0.8, 0.7, 0.6], [True, True, True, False])
    assert tuned_threshold(cases, 0.1) == pytest.approx(0.7)
    assert serve_fixed(cases, 0.65) == Served(3, 0)
    assert serve_fixed(cases, tuned_threshold(_cases([0.9], [False]), 0.1)) == Served(0, 0)


def test_replay_serves_after_evidence_and_is_repeatable() -> None:
    """A set without errors is served once its other half has shown it, the same way with the same seed."""
    cases = _cases(np.linspace(0.0, 3.0, 300).tolist(), [True] * 300)
    once = replay(cases, cases, 0.05, 0.05, seed=3)
    assert once.errors == 0
    assert once.hits > 200
    assert once == replay(cases, cases, 0.05, 0.05, seed=3)
    assert replay(cases, cases, 0.0, 0.05, seed=3).hits == 0


def test_stream_holds_its_bound() -> None:
    """A stream of known chances is served within its bound, and counts what it served."""
    streamed = run_stream(StreamLaw(entries=50), 0.05, 300, 0.1, seed=1)
    assert streamed.served == 300
    assert streamed.expected_errors <= 15.0
    assert 0 < streamed.labels_before_first < streamed.seen


@pytest.mark.parametrize(
    ("errors", "trials", "low", "high"),
    [(0, 100, 0.0, 0.0362), (5, 100, 0.0164, 0.1128), (20, 1_000, 0.0123, 0.0307), (0, 0, 0.0, 1.0)],
)
def test_interval_is_that_of_clopper_and_pearson(errors: int, trials: int, low: float, high: float) -> None:
    """The ends are the published ones."""
    assert interval(errors, trials) == pytest.approx((low, high), abs=1e-4)


def test_fitted_prior_follows_the_labels() -> None:
    """The weight of what decides is positive, and the numbers are shown as a module writes them."""
    prior = fit_prior([_cases([0.0, 0.1, 0.2, 0.8, 0.9, 1.0] * 40, [False, False, False, True, True, True] * 40)])
    assert prior.weights[0] > 0.5
    assert show_prior(prior).startswith("PRIOR = Prior(\n    center=np.array([")
