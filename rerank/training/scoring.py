"""Has a cross-encoder score the pools that it is judged on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from encoders.cpu import usable_cpus
from rerank.training.gate import ScoredPool
from rerank.training.pools import Pool, PoolSet
from rerank.types import Reranker


def score_pools(reranker: Reranker, pools: PoolSet) -> Iterator[ScoredPool]:
    """Yields each pool with its logits, in order; a query at a time on every usable core."""
    with ThreadPoolExecutor(usable_cpus()) as threads:
        yield from threads.map(lambda pool: _score(reranker, pool, pools.passages), pools.pools)


def _score(reranker: Reranker, pool: Pool, passages: Mapping[str, str]) -> ScoredPool:
    texts = [passages[passage_id] for passage_id in pool.passage_ids[: pool.found_count]]
    return ScoredPool(pool, np.asarray(reranker.score(pool.query, texts), dtype=np.float64))
