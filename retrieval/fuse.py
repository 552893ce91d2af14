"""Fuses the branches' scores into one order. Pure: the same candidates always give the same order.

The convex combination keeps what ranks throw away, how much better one candidate is than the next, and beats
reciprocal ranks where both were measured (Bruch, Gai and Ingber, 2023; `bench.quality` repeats it on our sets). The
cosine is used as it is. BM25 has no scale of its own, so it is divided by the score that no document can reach for
this query: unlike the best score of the pool, that does not depend on the other candidates.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from indexers.types import Candidates
from retrieval.types import FusedCandidate, Fusion, Mode, ScoreParts, Thresholds

_UNRANKED = 1 << 31


def fuse(candidates: Candidates, thresholds: Thresholds, sparse_bound: float, keep: int) -> list[FusedCandidate]:
    """Returns the best `keep` candidates, best first; equal scores are ordered by the dense rank, then by id.

    `sparse_bound` is the query's upper bound (`TermStatistics.upper_bound`).
    """
    if not candidates.chunk_ids:
        return []
    scores = _scores(candidates, thresholds, sparse_bound)
    return [
        FusedCandidate(
            candidates.chunk_ids[position],
            float(scores[position]),
            ScoreParts(
                dense=_known(candidates.dense_scores[position]),
                sparse=_known(candidates.sparse_scores[position]),
                fused=float(scores[position]),
            ),
        )
        for position in _best(candidates, scores, keep)
    ]


def convex(
    dense: NDArray[np.float32], sparse: NDArray[np.float32], dense_weight: float, sparse_bound: float
) -> NDArray[np.float64]:
    """Returns weight * cosine + (1 - weight) * BM25 / bound, float64 [n]."""
    return dense_weight * dense.astype(np.float64) + (1.0 - dense_weight) * normalise_sparse(sparse, sparse_bound)


def normalise_sparse(sparse: NDArray[np.float32], sparse_bound: float) -> NDArray[np.float64]:
    """Returns the sparse scores divided by the query's upper bound: float64 [n], from 0 to 1.

    A bound of learned weights is of what a generation holds; a passage written since may pass it and counts as 1.
    """
    if sparse_bound <= 0.0:
        return np.zeros(len(sparse), dtype=np.float64)
    return np.minimum(sparse.astype(np.float64) / sparse_bound, 1.0)


def reciprocal_ranks(ranks: list[NDArray[np.int32]], k: int) -> NDArray[np.float64]:
    """Returns the sum over branches of 1 / (k + rank), ranks from 1 (Cormack, Clarke and Buettcher, 2009).

    A rank of -1 means that the branch did not return the candidate and gives nothing.
    """
    total = np.zeros(len(ranks[0]), dtype=np.float64)
    for rank in ranks:
        total += np.where(rank < 0, 0.0, 1.0 / (k + rank.astype(np.float64) + 1.0))
    return total


def _best(candidates: Candidates, scores: NDArray[np.float64], keep: int) -> list[int]:
    """Returns the positions of the best, best first. Only what can be among them is sorted: ties need strings."""
    least = np.partition(scores, -keep)[-keep] if keep < len(scores) else -np.inf

    def order(position: int) -> tuple[float, int, str]:
        rank = int(candidates.dense_ranks[position])
        return -float(scores[position]), rank if rank >= 0 else _UNRANKED, candidates.chunk_ids[position]

    return sorted(np.flatnonzero(scores >= least).tolist(), key=order)[:keep]


def _scores(candidates: Candidates, thresholds: Thresholds, sparse_bound: float) -> NDArray[np.float64]:
    if thresholds.mode is Mode.DENSE:
        return candidates.dense_scores.astype(np.float64)
    if thresholds.mode is Mode.SPARSE:
        return normalise_sparse(candidates.sparse_scores, sparse_bound)
    if thresholds.fusion is Fusion.RRF:
        ranks = [candidates.dense_ranks, candidates.sparse_ranks]
        # First in every branch is 1, the scale of the scores that late interaction and a cross-encoder add.
        return reciprocal_ranks(ranks, thresholds.rrf_k) * ((thresholds.rrf_k + 1.0) / len(ranks))
    return convex(candidates.dense_scores, candidates.sparse_scores, thresholds.dense_weight, sparse_bound)


def _known(score: np.float32) -> float | None:
    return None if np.isnan(score) else float(score)
