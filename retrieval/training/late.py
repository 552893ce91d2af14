"""Late interaction in full precision: for each query token its best cosine in the passage, weighted by the token's IDF.

MaxSim of Khattab and Zaharia (2020) over the states of the bi-encoder. A token that more than half of the passages hold
(special ones, punctuation, stop words) says nothing and is left out on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encoders.types import TokenizedText
from retrieval.training.encoding import TokenStates

# The weight of a token that half of the passages hold.
_LEAST_WEIGHT = math.log(2.0)


@dataclass(frozen=True, slots=True)
class TokenWeights:
    """The IDF of every token id of a collection; float64 [largest id + 1]."""

    weights: NDArray[np.float64]
    unseen: float  # of an id beyond

    def of(self, ids: NDArray[np.int64]) -> NDArray[np.float64]:
        """Returns the weights [tokens], 0 for tokens that are left out."""
        known = ids < len(self.weights)
        found = np.full(len(ids), self.unseen)
        found[known] = self.weights[ids[known]]
        return np.where(found > _LEAST_WEIGHT, found, 0.0)


def token_weights(passages: Iterable[TokenizedText]) -> TokenWeights:
    """Counts a collection: ln(1 + (N - df + 0.5) / (df + 0.5)) of each token."""
    count, frequency = 0, np.zeros(0, dtype=np.int64)
    for passage in passages:
        count += 1
        ids = np.unique(passage.ids)
        if len(ids) and ids[-1] >= len(frequency):
            frequency = np.concatenate([frequency, np.zeros(int(ids[-1]) + 1 - len(frequency), dtype=np.int64)])
        frequency[ids] += 1
    weights = np.log1p((count - frequency + 0.5) / (frequency + 0.5))
    return TokenWeights(weights, math.log1p((count + 0.5) / 0.5))


def max_similarity(query: TokenStates, passage: TokenStates, weights: TokenWeights) -> float:
    """Returns the weighted mean over query tokens of the best cosine, from -1 to 1; 0.0 where nothing is left."""
    query_weights, passage_kept = weights.of(query.ids), weights.of(passage.ids) > 0
    kept = query_weights > 0
    if not kept.any() or not passage_kept.any():
        return 0.0
    cosines = query.states[kept].astype(np.float32) @ passage.states[passage_kept].astype(np.float32).T
    return float(np.average(cosines.max(axis=1), weights=query_weights[kept]))
