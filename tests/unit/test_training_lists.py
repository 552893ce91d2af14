"""From pools to lists, what teaches them, and how the first stage's score is calibrated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from rerank.calibrate import Mixture
from rerank.training.calibration import cross_entropy, fit_scale
from rerank.training.errors import TrainingDataInvalid
from rerank.training.lists import Mining, TrainingList, draw_lists
from rerank.training.pools import Pool, PoolSet, load_pools
from rerank.training.teaching import taught_by_base, taught_by_model

_EVEN = Mixture(1.0, 0.0, 0.0)


def _pool(scores: Sequence[float], relevant: Sequence[str], query_id: str = "q") -> Pool:
    ids = tuple(f"d{place}" for place in range(len(scores)))
    return Pool(
        query_id=query_id,
        query="pump",
        relevant=dict.fromkeys(relevant, 1),
        passage_ids=ids,
        text_ids=ids,
        hybrid=np.array(scores),
        late=None,
        found_count=len(scores),
    )


def _set(*pools: Pool) -> PoolSet:
    return PoolSet("s", {f"d{place}": f"text {place}" for place in range(40)}, pools)


def _list(base: Sequence[float], labels: Sequence[float]) -> TrainingList:
    return TrainingList("pump", tuple(f"p{place}" for place in range(len(base))), np.array(labels), np.array(base))


def test_list_has_the_relevant_passage_and_the_hardest_negatives() -> None:
    """Half of the negatives are the best ranked ones; the rest is drawn from deeper, the same in every run."""
    pool = _pool([0.9 - 0.01 * place for place in range(20)], ["d5"])
    [found] = draw_lists(_set(pool), _EVEN, Mining(list_size=7))
    assert found.passages[:4] == ("text 5", "text 0", "text 1", "text 2")
    assert found.labels.tolist() == [1, 0, 0, 0, 0, 0, 0]
    assert len(set(found.passages)) == 7
    [again] = draw_lists(_set(pool), _EVEN, Mining(list_size=7))
    assert again.passages == found.passages
    np.testing.assert_array_equal(found.base, [pool.hybrid[int(text.split()[1])] for text in found.passages])


def test_candidate_far_above_the_relevant_one_is_no_negative() -> None:
    """What the first stage puts far ahead of every labelled answer is probably one without a label."""
    [found] = draw_lists(_set(_pool([0.9, 0.6, 0.55], ["d1"])), _EVEN, Mining(doubt_margin=0.15))
    assert found.passages == ("text 1", "text 2")


@pytest.mark.parametrize("relevant", [[], ["d0", "d1"]])
def test_pool_with_nothing_to_tell_apart_gives_no_list(relevant: list[str]) -> None:
    """Without a relevant passage, or without any other, there is nothing to learn."""
    assert not list(draw_lists(_set(_pool([0.9, 0.8], relevant)), _EVEN, Mining()))


def test_base_score_is_the_one_that_is_served() -> None:
    """It is the weighted mean of fusion and late interaction; where that takes no part, fusion alone."""
    mixture, alone = Mixture(3.0, 1.0, 0.5), _pool([0.5, 0.25], ["d0"])
    np.testing.assert_allclose(alone.base(mixture), [0.5, 0.25])
    both = replace(alone, late=np.array([0.1, 0.85]))
    np.testing.assert_allclose(both.base(mixture), [0.4, 0.4])


def test_pools_come_back_from_a_file_as_they_were(tmp_path: Path) -> None:
    """A resumed run learns from the same pools."""
    late = np.array([0.75, 0.125])
    written = _set(replace(_pool([0.5, 0.25], ["d1"]), late=late), _pool([0.5], []), _pool([], [], "empty"))
    written.save(tmp_path / "pools.jsonl")
    read = load_pools(tmp_path / "pools.jsonl")
    assert (read.name, read.passages) == (written.name, written.passages)
    for found, expected in zip(read.pools, written.pools, strict=True):
        assert (found.query_id, found.relevant, found.passage_ids) == (
            expected.query_id,
            expected.relevant,
            expected.passage_ids,
        )
        np.testing.assert_array_equal(found.hybrid, expected.hybrid)
    np.testing.assert_array_equal(read.pools[0].late, late)
    assert read.pools[1].late is None
    assert [path.name for path in tmp_path.iterdir()] == ["pools.jsonl"]


def test_file_without_pools_is_refused(tmp_path: Path) -> None:
    """Something else under the name of pools is an error, not an empty set."""
    path = tmp_path / "pools.jsonl"
    path.write_text('{"query": "a"}\n', encoding="utf-8")
    with pytest.raises(TrainingDataInvalid):
        load_pools(path)


def test_calibration_finds_the_scale_that_made_the_labels() -> None:
    """Labels drawn from softmax(20 * score) are fitted by a scale near 20."""
    draw = np.random.default_rng(3)
    lists = []
    for _ in range(2_000):
        base = draw.uniform(0.3, 0.7, 6)
        shares = np.exp(20 * base)
        labels = np.zeros(6)
        labels[draw.choice(6, p=shares / shares.sum())] = 1
        lists.append(_list(base.tolist(), labels.tolist()))
    assert fit_scale(lists) == pytest.approx(20, rel=0.15)


def test_calibration_of_nothing_is_one() -> None:
    """Without lists a score is its own logit, and the loss of nothing is 0."""
    assert fit_scale([]) == 1.0
    assert cross_entropy(1.0, []) == 0.0


def test_cross_entropy_of_equal_scores_is_the_logarithm_of_their_number() -> None:
    """Scores that say nothing cost ln(n), whatever the scale, and large ones do not overflow."""
    scored: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = [(np.full(4, 900.0), np.array([1.0, 0, 0, 0]))]
    assert cross_entropy(100.0, scored) == pytest.approx(np.log(4))


def test_base_teaches_logits_that_spread_evenly() -> None:
    """Logits of all pairs have mean 0 and deviation 2, in the order of the scores."""
    found = taught_by_base([_list([0.1, 0.2], [1, 0]), _list([0.4, 0.9], [0, 1])])
    logits = np.array([pair.logit for pair in found])
    assert (float(logits.mean()), float(logits.std())) == pytest.approx((0.0, 2.0))
    assert np.argsort(logits).tolist() == [0, 1, 2, 3]
    assert not taught_by_base([])


class _LengthReranker:
    """Scores a passage by its length: a teacher whose opinion is known."""

    model_id = "length"
    revision = "1"

    def score(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Returns each passage's length."""
        return np.array([len(passage) for passage in passages], dtype=np.float32)


def test_larger_model_teaches_its_logits() -> None:
    """Every pair of a list gets the teacher's logit for it."""
    [first, second] = taught_by_model([TrainingList("q", ("a", "abc"), np.ones(2), np.ones(2))], _LengthReranker())
    assert (first.passage, first.logit, second.passage, second.logit) == ("a", 1.0, "abc", 3.0)
