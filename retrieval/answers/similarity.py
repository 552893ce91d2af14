"""How alike two questions are, in a handful of figures that a model weighs.

The cosine of their vectors; late interaction both ways, because a question that only adds to another finds all of the
other's tokens but not the reverse; the worst match of any one token, since it takes a single word to turn a question;
and how much of their content the two have in common word by word. Distances are in logarithms: between 0.98 and 0.99
lies as much as between 0.5 and 0.75.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encoders.types import EncodedQuery
from retrieval.answers.guard import Comparison

FEATURES = (
    *("cosine", "asked_in_stored", "stored_in_asked"),
    *("worst_asked", "worst_stored", "unlike_asked", "unlike_stored"),
    *("jaccard", "asked_unmatched", "stored_unmatched", "order", "refused"),
)
_SOFTENING = 0.02  # a distance that is hardly told from none


@dataclass(frozen=True, slots=True)
class _Direction:
    """How one question's tokens are found among the other's."""

    mean: float  # weighted mean of the best cosines
    worst: float  # the largest part that one token misses of that mean
    unlike: float  # the share of the weights whose best cosine is below a half


def features_of(asked: EncodedQuery, stored: EncodedQuery, comparison: Comparison) -> NDArray[np.float64]:
    """Returns float64 [len(FEATURES)], finite; a model without token vectors gets the cosine for late interaction."""
    cosine = float(asked.vector @ stored.vector)
    there, back = _directions(asked.tokens, stored.tokens, cosine)
    return np.array(
        [
            *_closeness(cosine, there.mean, back.mean),
            *_closeness(1.0 - there.worst, 1.0 - back.worst),
            *(there.unlike, back.unlike),
            comparison.jaccard,
            *(np.log1p(comparison.asked_unmatched), np.log1p(comparison.stored_unmatched)),
            comparison.order_agreement,
            float(bool(comparison.refused)),
        ]
    )


def _directions(
    asked: NDArray[np.float32] | None, stored: NDArray[np.float32] | None, cosine: float
) -> tuple[_Direction, _Direction]:
    if asked is None or stored is None or not len(asked) or not len(stored):
        alone = _Direction(cosine, 1.0 - cosine, float(cosine < 0.5))
        return alone, alone
    asked_weights, stored_weights = np.linalg.norm(asked, axis=1), np.linalg.norm(stored, axis=1)
    cosines = (asked @ stored.T) / np.maximum(np.outer(asked_weights, stored_weights), 1e-12)
    return _direction(cosines.max(axis=1), asked_weights), _direction(cosines.max(axis=0), stored_weights)


def _direction(best: NDArray[np.float32], weights: NDArray[np.float32]) -> _Direction:
    missed = weights * (1.0 - best)
    return _Direction(float(weights @ best), float(missed.max()), float(weights[best < 0.5].sum()))


def _closeness(*similarities: float) -> NDArray[np.float64]:
    closeness: NDArray[np.float64] = -np.log(np.maximum(1.0 - np.array(similarities), 0.0) + _SOFTENING)
    return closeness
