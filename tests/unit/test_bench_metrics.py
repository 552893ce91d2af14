"""The metrics of the benchmarks, against figures worked out by hand."""

from __future__ import annotations

import math

import pytest

from bench._common.metrics import best_documents, judge, ndcg, recall, reciprocal_rank


def test_ndcg_discounts_by_the_logarithm_of_the_rank() -> None:
    """A single relevant document at rank 2 is worth 1 / log2(3)."""
    assert ndcg(["x", "a"], {"a": 1}, 10) == pytest.approx(1 / math.log2(3))


def test_ndcg_uses_graded_gains_linearly() -> None:
    """Grades 2 and 1 in the wrong order, over the ideal order."""
    ideal = 2 + 1 / math.log2(3)
    assert ndcg(["b", "a"], {"a": 2, "b": 1}, 10) == pytest.approx((1 + 2 / math.log2(3)) / ideal)


def test_ndcg_is_one_for_the_ideal_ranking_of_more_documents_than_the_cut() -> None:
    """The ideal is cut as the ranking is."""
    relevant = {str(number): 1 for number in range(20)}
    assert ndcg(list(relevant)[:10], relevant, 10) == pytest.approx(1.0)


def test_ndcg_ignores_negative_grades_and_what_is_below_the_cut() -> None:
    """A judged but irrelevant document gives nothing, neither does one at rank 11."""
    assert ndcg(["bad", *map(str, range(9)), "a"], {"a": 1, "bad": -1}, 10) == 0.0


def test_reciprocal_rank_takes_the_first_relevant_document() -> None:
    """Later ones do not count."""
    assert reciprocal_rank(["x", "y", "a", "b"], {"a": 1, "b": 1}, 10) == pytest.approx(1 / 3)
    assert reciprocal_rank(["x"] * 10 + ["a"], {"a": 1}, 10) == 0.0


def test_recall_counts_relevant_documents_only() -> None:
    """Documents with grade 0 are not wanted."""
    assert recall(["a", "z"], {"a": 1, "b": 1, "z": 0}, 100) == 0.5


def test_metrics_of_a_question_without_relevant_documents_are_zero() -> None:
    """Nothing to find is no division by zero."""
    judged = judge(["a"], {})
    assert (judged.ndcg, judged.mrr, judged.recall) == (0.0, 0.0, 0.0)


def test_best_documents_keeps_the_first_chunk_of_each() -> None:
    """A document stands where its best chunk stood."""
    assert best_documents(["b", "a", "b", "c", "a"]) == ["b", "a", "c"]
