"""Trying fusions on pools gives what ranking the candidates gives."""

from __future__ import annotations

import numpy as np
import pytest

from bench._common.fusions import (
    DENSE_WEIGHTS,
    NORMALISATIONS,
    branch_scores,
    by_bound,
    convex_scores,
    pool_ndcg,
    rrf_scores,
)
from bench._common.metrics import best_documents, ndcg
from bench._common.pools import Pool
from indexers.types import Candidates
from rerank.calibrate import Mixture
from rerank.stopping import StopRule
from retrieval.fuse import fuse
from retrieval.types import Fusion, Mode, Thresholds


def _pool(seed: int) -> Pool:
    """30 chunks of 12 documents; dense scores are coarse, so that ties happen."""
    random = np.random.default_rng(seed)
    count = 30
    dense = np.round(random.random(count), 1).astype(np.float32)
    sparse = (random.random(count) * 20).astype(np.float32)
    dense_ranks = np.argsort(np.lexsort((np.arange(count), -dense))).astype(np.int32)
    sparse_ranks = np.argsort(np.argsort(-sparse)).astype(np.int32)
    dense_ranks[dense_ranks >= 20] = -1
    sparse_ranks[sparse_ranks >= 20] = -1
    documents = tuple(f"d{number}" for number in random.integers(0, 12, count))
    return Pool("q", {"d1": 2, "d2": 1, "d3": 1, "gone": 1}, documents, dense, sparse, dense_ranks, sparse_ranks, 40.0)


def _served_ndcg(pool: Pool, mode: Mode, fusion: Fusion, weight: float) -> float:
    """What `retrieval.fuse` makes of the same candidates."""
    ids = tuple(f"{number:03d}" for number in range(len(pool.documents)))
    candidates = Candidates(ids, pool.dense, pool.sparse, pool.dense_ranks, pool.sparse_ranks)
    fused = fuse(candidates, _thresholds(mode, fusion, weight), pool.sparse_bound, len(ids))
    return ndcg(best_documents([pool.documents[int(one.chunk_id)] for one in fused]), pool.relevant, 10)


def _thresholds(mode: Mode, fusion: Fusion, weight: float) -> Thresholds:
    return Thresholds(
        top_k=30,
        mode=mode,
        fusion=fusion,
        dense_weight=weight,
        rrf_k=60,
        candidates=30,
        min_score=-1.0,
        rerank=False,
        rerank_depth=1,
        rerank_deadline_share=0.5,
        late=False,
        mixture=Mixture(first_stage=1.0, late=0.0, cross_encoder=1.0),
        gate_margin=0.0,
        stop_rule=StopRule(0.0, ()),
        context_tokens=100,
        duplicate_overlap=1.0,
        passages=None,
        expansion=None,
        use_cache=False,
    )


@pytest.mark.parametrize("seed", range(20))
def test_pool_ndcg_is_that_of_the_served_order(seed: int) -> None:
    """Every weight of the grid, and reciprocal ranks, ties included."""
    pool = _pool(seed)
    found = pool_ndcg(pool, convex_scores(pool, by_bound, DENSE_WEIGHTS))
    served = [_served_ndcg(pool, Mode.HYBRID, Fusion.CONVEX, float(weight)) for weight in DENSE_WEIGHTS]
    assert found == pytest.approx(served)
    assert pool_ndcg(pool, rrf_scores(pool))[0] == pytest.approx(_served_ndcg(pool, Mode.HYBRID, Fusion.RRF, 0.5))


def test_branch_scores_leave_out_what_the_branch_did_not_find() -> None:
    """Candidates of the other branch do not join its ranking."""
    pool = _pool(1)
    scores = branch_scores(pool, "sparse")[0]
    assert np.isneginf(scores[pool.sparse_ranks < 0]).all()
    assert pool_ndcg(pool, scores[np.newaxis])[0] <= 1.0


@pytest.mark.parametrize("name", NORMALISATIONS)
def test_normalisations_keep_the_order_of_scores(name: str) -> None:
    """A better BM25 score is never worth less."""
    pool = _pool(2)
    normalised = NORMALISATIONS[name](pool)
    assert np.isfinite(normalised).all()
    assert (np.diff(normalised[np.argsort(pool.sparse)]) >= 0.0).all()


def test_pool_ndcg_of_an_empty_pool_is_zero() -> None:
    """A question that found nothing counts, with zero."""
    empty = np.empty(0, dtype=np.float32)
    ranks = np.empty(0, dtype=np.int32)
    pool = Pool("q", {"d1": 1}, (), empty, empty, ranks, ranks, 0.0)
    assert pool_ndcg(pool, convex_scores(pool, by_bound, DENSE_WEIGHTS)).tolist() == [0.0] * len(DENSE_WEIGHTS)
