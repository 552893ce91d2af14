"""The gate: what improves is installed, all else is refused."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench._common.metrics import ndcg as bench_ndcg
from rerank.calibrate import Mixture
from rerank.training.errors import NotBetter
from rerank.training.gate import Gate, ScoredPool, SetFigures, choose_weight, judge, mean_gain, ndcg
from rerank.training.installing import CARD, Provenance, card, figures_table, install
from rerank.training.pools import Pool

_EVEN = Mixture(1.0, 0.0, 0.0)
_PROVENANCE = Provenance(
    "start", 3, 160, Mixture(0.6, 0.4, 0.2), ("own.jsonl; licence: MIT",), "headrace rerank train", "alike"
)


def _figures(name: str, before: float, after: float) -> SetFigures:
    return SetFigures(name, (before,) * 4, (after,) * 4)


def _scored(base: Sequence[float], logits: Sequence[float], relevant: str, texts: str = "abc") -> ScoredPool:
    ids = tuple(f"p{place}" for place in range(len(base)))
    pool = Pool("q", "pump", {relevant: 1}, ids, tuple(texts), np.array(base), None, len(base))
    return ScoredPool(pool, np.array(logits))


@pytest.mark.parametrize(
    ("after", "words"),
    [
        ((0.51, 0.81), None),
        ((0.5, 0.809), r"\+0\.0045"),
        ((0.53, 0.789), "of second changes by -0.0110"),
        ((0.5, 0.8), r"\+0\.0000"),
    ],
)
def test_gate_objects_to_what_does_not_improve(after: tuple[float, float], words: str | None) -> None:
    """The mean must rise by 0.005 and no set may fall by more than 0.01."""
    objection = Gate().objection([_figures("first", 0.5, after[0]), _figures("second", 0.8, after[1])])
    assert (objection is None) == (words is None)
    assert words is None or re.search(words, str(objection))


def test_gate_objects_when_nothing_judges() -> None:
    """Without a held-out set there is no evidence."""
    assert Gate().objection([]) is not None


def test_judge_orders_by_base_and_weighted_probability() -> None:
    """Weight 0 leaves the first stage's order; a document stands where its best passage does."""
    scored = _scored([0.9, 0.8, 0.1], [-9.0, 9.0, 0.0], "b")
    figures = judge("s", [scored], replace(_EVEN, cross_encoder=0.5))
    assert figures.before == (pytest.approx(1 / np.log2(3)),)
    assert figures.after == (1.0,)
    twice = _scored([0.9, 0.8, 0.1], [9.0, -9.0, 0.0], "b", texts="aab")
    assert judge("s", [twice], _EVEN).before == (pytest.approx(1 / np.log2(3)),)


def test_weight_is_chosen_among_those_that_hurt_no_set() -> None:
    """A large weight that helps on average but costs one set too much is passed over; 0 when nothing helps."""
    helped = [_scored([0.52, 0.5, 0.1], [-3.0, 3.0, 0.0], "b")]
    hurt = [_scored([0.6, 0.45, 0.1], [-3.0, 3.0, 0.0], "a")]
    weight = choose_weight({"helped": helped, "hurt": hurt}, _EVEN, Gate())
    assert 0.0 < weight.cross_encoder <= 0.15
    assert choose_weight({"hurt": hurt}, _EVEN, Gate()) == _EVEN
    assert choose_weight({}, _EVEN, Gate()) == _EVEN


def test_weight_is_in_the_units_of_the_settings() -> None:
    """Settings that weigh all else four times as much get four times the weight: the ranking is the same."""
    late = np.array([0.52, 0.5, 0.1])
    helped = [_scored([0.52, 0.5, 0.1], [-3.0, 3.0, 0.0], "b")]
    with_late = [replace(one, pool=replace(one.pool, late=late)) for one in helped]
    once = choose_weight({"s": with_late}, Mixture(0.6, 0.4, 0.0), Gate())
    fourfold = choose_weight({"s": with_late}, Mixture(2.4, 1.6, 0.0), Gate())
    assert once.cross_encoder > 0.0
    assert fourfold.cross_encoder == pytest.approx(4 * once.cross_encoder)


def test_judge_ranks_as_the_service_when_late_interaction_takes_no_part() -> None:
    """Fusion then has its own weight only, so the cross-encoder's opinion counts for more beside it."""
    scored = _scored([0.6, 0.5, 0.1], [-9.0, 9.0, 0.0], "b")
    mixture = Mixture(0.2, 0.8, 0.05)
    heard = replace(scored, pool=replace(scored.pool, late=scored.pool.hybrid))
    assert judge("s", [scored], mixture).after == (1.0,)
    assert judge("s", [heard], mixture).gain == 0.0


def test_ndcg_is_that_of_the_benchmarks() -> None:
    """A model is installed by the figure that the README publishes."""
    relevant = {"a": 2, "c": 1}
    for ranking in (["a", "b", "c"], ["b", "c"], []):
        assert ndcg(ranking, relevant) == pytest.approx(bench_ndcg(ranking, relevant, 10))
    assert ndcg(["a"], {}) == 0.0


def _candidate(folder: Path) -> Path:
    folder.mkdir()
    for name in ("model.onnx", "config.json", "tokenizer.json", "sentence_bert_config.json"):
        (folder / name).write_text(name, encoding="utf-8")
    return folder


def test_model_that_improves_is_installed_with_its_card(tmp_path: Path) -> None:
    """What was there is replaced, and the card says what the new one is made of."""
    target = tmp_path / "small"
    target.mkdir()
    (target / "old").touch()
    install(_candidate(tmp_path / "made"), target, [_figures("s", 0.5, 0.6)], _PROVENANCE)
    assert not (target / "old").exists()
    assert (target / "model.onnx").read_text(encoding="utf-8") == "model.onnx"
    text = (target / CARD).read_text(encoding="utf-8")
    assert "own.jsonl; licence: MIT" in text
    assert "| s | 4 | 0.5000 | 0.6000 | +0.1000 |" in text
    assert "fusion (weight 0.6), late interaction (0.4)" in text
    assert "0.2, for `rerank.cross_encoder_weight`" in text


def test_model_that_does_not_improve_leaves_what_is_installed(tmp_path: Path) -> None:
    """A refusal says why, and touches nothing."""
    target = tmp_path / "small"
    target.mkdir()
    (target / "old").touch()
    with pytest.raises(NotBetter, match=r"not installed: mean nDCG@10 changes by \+0\.0000"):
        install(_candidate(tmp_path / "made"), target, [_figures("s", 0.5, 0.5)], _PROVENANCE)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["made", "small"]
    assert [path.name for path in target.iterdir()] == ["old"]


def test_figures_end_with_the_mean_of_the_sets() -> None:
    """Every set counts the same, however many queries it has."""
    figures = [SetFigures("a", (0.0,), (1.0,)), SetFigures("b", (0.5,) * 3, (0.5,) * 3)]
    assert mean_gain(figures) == 0.5
    assert figures_table(figures).splitlines()[-1] == "| mean of the sets | 4 | 0.2500 | 0.7500 | +0.5000 |"
    assert "first 3 layers" in card("small", figures, _PROVENANCE)
