"""Ways to fuse two branches' scores, tried on pools: every weight of a grid at once, judged by nDCG@10.

The nDCG of a question needs the ranks of its relevant documents only, and a rank is a count of better scores, so no
ranking is ever sorted here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import NDArray

from bench._common.metrics import NDCG_CUT
from bench._common.pools import Pool
from retrieval.fuse import normalise_sparse, reciprocal_ranks

Scores = NDArray[np.float64]
Normalise = Callable[[Pool], Scores]

DENSE_WEIGHTS: Scores = np.round(np.linspace(0.0, 1.0, 21), 2)


def by_bound(pool: Pool) -> Scores:
    """Returns BM25 over the query's upper bound."""
    return normalise_sparse(pool.sparse, pool.sparse_bound)


def by_pool_max(pool: Pool) -> Scores:
    """Returns BM25 over the best score of the pool; depends on the other candidates."""
    return normalise_sparse(pool.sparse, float(pool.sparse.max(initial=0.0)))


def by_pool_range(pool: Pool) -> Scores:
    """Returns BM25 from 0 at the pool's least to 1 at its best score; depends on the other candidates."""
    least = float(pool.sparse.min(initial=np.inf)) if len(pool.sparse) else 0.0
    return normalise_sparse(pool.sparse - np.float32(least), float(pool.sparse.max(initial=0.0)) - least)


def square_root(pool: Pool) -> Scores:
    """Returns the square root of BM25 over the upper bound."""
    return np.sqrt(by_bound(pool))


def saturating(half: float) -> Normalise:
    """Returns s / (s + half): absolute, a BM25 of `half` gives 0.5."""

    def normalise(pool: Pool) -> Scores:
        score = pool.sparse.astype(np.float64)
        return score / (score + half)

    return normalise


def bound_saturating(half: float) -> Normalise:
    """Returns r / (r + half) * (1 + half) for r = BM25 over the upper bound: 1 at the bound, steeper below."""

    def normalise(pool: Pool) -> Scores:
        share = by_bound(pool)
        return share / (share + half) * (1.0 + half)

    return normalise


def scaled(scale: float) -> Normalise:
    """Returns BM25 times a constant: no normalisation by query at all."""

    def normalise(pool: Pool) -> Scores:
        return pool.sparse.astype(np.float64) * scale

    return normalise


NORMALISATIONS: Mapping[str, Normalise] = {
    "bound": by_bound,
    "pool-max": by_pool_max,
    "pool-range": by_pool_range,
    "sqrt": square_root,
    "saturating-5": saturating(5.0),
    "saturating-10": saturating(10.0),
    "saturating-20": saturating(20.0),
    "bound-saturating-0.2": bound_saturating(0.2),
    "bound-saturating-0.5": bound_saturating(0.5),
    "scaled-1/30": scaled(1 / 30),
}


def convex_scores(pool: Pool, normalise: Normalise, weights: Scores) -> Scores:
    """Returns weight * cosine + (1 - weight) * normalised BM25: float64 [weights, n]."""
    column = weights[:, np.newaxis]
    return column * pool.dense.astype(np.float64) + (1.0 - column) * normalise(pool)


def rrf_scores(pool: Pool, k: int = 60) -> Scores:
    """Returns the reciprocal rank fusion: float64 [1, n]."""
    return reciprocal_ranks([pool.dense_ranks, pool.sparse_ranks], k)[np.newaxis]


def branch_scores(pool: Pool, branch: str) -> Scores:
    """Returns one branch's own ranking: float64 [1, n], minus infinity for what it did not return."""
    scores, ranks = (pool.dense, pool.dense_ranks) if branch == "dense" else (pool.sparse, pool.sparse_ranks)
    return np.where(ranks < 0, -np.inf, scores.astype(np.float64))[np.newaxis]


def pool_ndcg(pool: Pool, scores: Scores) -> Scores:
    """Returns the nDCG@10 float64 [rows] of each row of `scores` [rows, n]; a document counts by its best chunk.

    Equal scores are ordered by the dense rank, as `retrieval.fuse` does it.
    """
    gains = np.zeros(len(scores))
    if len(pool.documents):
        names, best_of = _documents(pool, scores)
        for place, name in enumerate(names):
            grade = pool.relevant.get(name, 0)
            if grade > 0:
                gains += grade * _discounts(best_of, place)
    ideal = sorted((grade for grade in pool.relevant.values() if grade > 0), reverse=True)[:NDCG_CUT]
    best = sum(grade / np.log2(rank + 1) for rank, grade in enumerate(ideal, 1))
    return gains / best if best else gains


def _documents(pool: Pool, scores: Scores) -> tuple[list[str], Scores]:
    """Returns the documents by their best dense rank, and their best scores [rows, documents]."""
    ranks = np.where(pool.dense_ranks < 0, np.iinfo(np.int32).max, pool.dense_ranks)
    order = np.argsort(ranks, kind="stable")
    place_of: dict[str, int] = {}
    for chunk in order:
        place_of.setdefault(pool.documents[chunk], len(place_of))
    owners = np.array([place_of[name] for name in pool.documents])
    by_owner = np.argsort(owners, kind="stable")
    starts = np.searchsorted(owners[by_owner], np.arange(len(place_of)))
    return list(place_of), np.maximum.reduceat(scores[:, by_owner], starts, axis=1)


def _discounts(best_of: Scores, place: int) -> Scores:
    own = best_of[:, [place]]
    ahead = (best_of > own).sum(axis=1) + (best_of[:, :place] == own).sum(axis=1)
    found = (ahead < NDCG_CUT) & np.isfinite(own[:, 0])
    return np.where(found, 1.0 / np.log2(ahead + 2.0), 0.0)
