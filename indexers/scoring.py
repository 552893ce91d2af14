"""The two raw scores of a chunk, computed the same way wherever its vectors lie.

Sums run row by row in a fixed order, so a chunk's score depends neither on its neighbours nor on which index found it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from encoders.types import SparseVector


def dense_scores(vectors: NDArray[np.float32], query: NDArray[np.float32]) -> NDArray[np.float32]:
    """Returns the dot products float32 [n] of vectors [n, dim] with a query [dim]; cosines, as both have unit length.

    No matrix product: its blocking makes the last bits of a row depend on how many rows there are, and its threads wait
    for each other when the cores are busy (8,192 x 384 on two busy cores: 8 ms at p95, this way 0.25 ms).
    """
    scores: NDArray[np.float32] = np.vecdot(vectors, query)
    return scores


def sparse_scores(
    owners: NDArray[np.int64], terms: NDArray[np.uint32], weights: NDArray[np.float32], query: SparseVector, count: int
) -> NDArray[np.float64]:
    """Returns the dot products float64 [count] of sparse rows with a query.

    The rows are given as entries: `owners` [entries] from 0 to count - 1, each owner's `terms` in increasing order.
    """
    if not len(query.indices) or not len(terms):
        return np.zeros(count)
    position = np.minimum(np.searchsorted(query.indices, terms), len(query.indices) - 1)
    shared = query.indices[position] == terms
    products = weights[shared].astype(np.float64) * query.values[position[shared]].astype(np.float64)
    return np.bincount(owners[shared], weights=products, minlength=count).astype(np.float64, copy=False)


def best(scores: NDArray[np.float32] | NDArray[np.float64], limit: int) -> NDArray[np.int64]:
    """Returns the positions of the `limit` greatest scores, in no particular order."""
    if limit >= len(scores):
        return np.arange(len(scores), dtype=np.int64)
    return np.argpartition(scores, len(scores) - limit)[len(scores) - limit :].astype(np.int64)
