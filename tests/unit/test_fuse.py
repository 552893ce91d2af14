"""Fusion of branch scores."""

from __future__ import annotations

import numpy as np
import pytest

from indexers.types import Candidates
from retrieval.fuse import convex, fuse, normalise_sparse, reciprocal_ranks
from retrieval.settings import Settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Fusion, Mode, Thresholds


def thresholds(**asked: object) -> Thresholds:
    """Returns the default thresholds with some replaced."""
    return resolve(Settings(), Overrides(**asked))  # type: ignore[arg-type]


def candidates(rows: list[tuple[str, float, float, int, int]]) -> Candidates:
    """Returns candidates from (id, dense score, sparse score, dense rank, sparse rank)."""
    return Candidates(
        chunk_ids=tuple(row[0] for row in rows),
        dense_scores=np.array([row[1] for row in rows], dtype=np.float32),
        sparse_scores=np.array([row[2] for row in rows], dtype=np.float32),
        dense_ranks=np.array([row[3] for row in rows], dtype=np.int32),
        sparse_ranks=np.array([row[4] for row in rows], dtype=np.int32),
    )


def test_fuse_convex_weighs_the_cosine_against_bounded_bm25() -> None:
    """The score is w * cosine + (1 - w) * BM25 / bound."""
    scores = convex(np.array([0.5], dtype=np.float32), np.array([6.0], dtype=np.float32), 0.75, 12.0)
    assert scores == pytest.approx([0.75 * 0.5 + 0.25 * 0.5])


def test_fuse_query_without_terms_leaves_the_dense_order() -> None:
    """A query of stop words has a BM25 bound of zero, and nothing is divided by it."""
    assert normalise_sparse(np.zeros(2, dtype=np.float32), 0.0).tolist() == [0.0, 0.0]
    found = candidates([("a", 0.2, 0.0, 1, -1), ("b", 0.9, 0.0, 0, -1)])
    assert [one.chunk_id for one in fuse(found, thresholds(), 0.0, 10)] == ["b", "a"]


def test_fuse_reciprocal_ranks_start_at_one_and_skip_missing_branches() -> None:
    """The best rank gives 1 / (k + 1); a branch that did not return the candidate gives nothing."""
    ranks = [np.array([0, -1], dtype=np.int32), np.array([2, 0], dtype=np.int32)]
    assert reciprocal_ranks(ranks, 60) == pytest.approx([1 / 61 + 1 / 63, 1 / 61])


def test_fuse_keeps_raw_scores_beside_the_fused_one() -> None:
    """Every score that the final one was made from is in the reply, attached to its own chunk."""
    found = candidates([("a", 0.2, 4.0, 1, 0), ("b", 0.9, 1.0, 0, 1)])
    best, second = fuse(found, thresholds(dense_weight=1.0), 10.0, 10)
    assert (best.chunk_id, second.chunk_id) == ("b", "a")
    assert best.parts.dense == pytest.approx(0.9)
    assert best.parts.sparse == pytest.approx(1.0)
    assert best.score == best.parts.fused


def test_fuse_ties_are_broken_by_dense_rank_then_id() -> None:
    """Equal scores have one order, whatever order the candidates came in."""
    rows = [("c", 0.5, 1.0, 1, 0), ("a", 0.5, 1.0, -1, 1), ("b", 0.5, 1.0, 0, 2), ("d", 0.5, 1.0, -1, 3)]
    for order in (rows, rows[::-1]):
        assert [one.chunk_id for one in fuse(candidates(order), thresholds(), 10.0, 10)] == ["b", "c", "a", "d"]


def test_fuse_single_branches_use_their_own_scores() -> None:
    """Dense is the cosine as it is; sparse is BM25 by the bound; an unasked branch stays None."""
    found = candidates([("a", 0.4, np.nan, 0, -1)])
    [dense] = fuse(found, thresholds(mode=Mode.DENSE), 0.0, 10)
    assert dense.score == pytest.approx(0.4)
    assert dense.parts.sparse is None
    [sparse] = fuse(candidates([("a", np.nan, 3.0, -1, 0)]), thresholds(mode=Mode.SPARSE), 12.0, 10)
    assert sparse.score == pytest.approx(0.25)
    assert sparse.parts.dense is None


def test_fuse_returns_no_more_than_asked() -> None:
    """Only the best are kept, and nothing comes of nothing."""
    found = candidates([(str(n), n / 10, 1.0, 9 - n, n) for n in range(10)])
    assert [one.chunk_id for one in fuse(found, thresholds(fusion=Fusion.CONVEX), 10.0, 3)] == ["9", "8", "7"]
    assert fuse(candidates([]), thresholds(), 1.0, 3) == []
