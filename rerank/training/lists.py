"""From a pool to a list that is learnt from: the relevant passages, and negatives that are hard to tell from them.

Negatives come from what retrieval found: half of them the best ranked, where the first stage errs, the rest drawn from
deeper. A candidate that the first stage puts far above every relevant one is more often an answer without a label than
a mistake (Qu et al., 2021, found most such "negatives" of MS MARCO relevant), so it is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

from rerank.calibrate import Mixture
from rerank.training.pools import Pool, PoolSet


@dataclass(frozen=True, slots=True)
class TrainingList:
    """A query with passages; arrays are [n]."""

    query: str
    passages: tuple[str, ...]
    labels: NDArray[np.float64]  # 1 relevant, 0 not
    base: NDArray[np.float64]  # the first stage's score


@dataclass(frozen=True, slots=True)
class Mining:
    """How lists are drawn from pools."""

    list_size: int = 8
    most_relevant: int = 2  # relevant passages of a list at most
    doubt_margin: float = 0.15  # of the base score above the best relevant one
    seed: int = 20_261_130


def draw_lists(pools: PoolSet, mixture: Mixture, mining: Mining) -> Iterator[TrainingList]:
    """Yields a list for each pool that has both a relevant passage and negatives; the same ones in every run."""
    for pool in pools.pools:
        base = pool.base(mixture)
        chosen = _choose(pool, base, mining)
        if chosen is not None:
            passages = tuple(pools.passages[pool.passage_ids[place]] for place in chosen)
            yield TrainingList(pool.query, passages, pool.labels()[chosen], base[chosen])


def _choose(pool: Pool, base: NDArray[np.float64], mining: Mining) -> NDArray[np.intp] | None:
    """Returns the positions that make the list, relevant ones first; None when there is nothing to tell apart."""
    labels = pool.labels()
    relevant = np.flatnonzero(labels > 0)
    if not len(relevant):
        return None
    relevant = relevant[np.argsort(-base[relevant], kind="stable")][: mining.most_relevant]
    negatives = np.flatnonzero((labels == 0) & (base <= base[relevant].max() + mining.doubt_margin))
    wanted = mining.list_size - len(relevant)
    if not len(negatives):
        return None
    return np.concatenate([relevant, _hard(negatives, base, wanted, _random(pool, mining))])


def _hard(
    negatives: NDArray[np.intp], base: NDArray[np.float64], wanted: int, random: np.random.Generator
) -> NDArray[np.intp]:
    ranked = negatives[np.argsort(-base[negatives], kind="stable")]
    first = (wanted + 1) // 2
    deeper = ranked[first:]
    drawn = random.permutation(len(deeper))[: wanted - first]
    return np.concatenate([ranked[:first], deeper[np.sort(drawn)]])


def _random(pool: Pool, mining: Mining) -> np.random.Generator:
    digest = blake2b(f"{mining.seed}\0{pool.query_id}".encode(), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest, "little"))
