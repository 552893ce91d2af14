"""From logits to scores and an order that do not depend on which other passages were in the pool."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each opinion counts in a combined score."""

    first_stage: float  # of all that is known before the cross-encoder
    cross_encoder: float


@dataclass(frozen=True, slots=True)
class Mixture:
    """How much each opinion counts: a score is the weighted mean of the opinions that were heard.

    So it stays on one scale, about 0 to 1, whether or not late interaction and the cross-encoder took part.
    """

    first_stage: float
    late: float
    cross_encoder: float

    def before(
        self, first_stage_scores: NDArray[np.float64], late_scores: NDArray[np.float64] | None
    ) -> NDArray[np.float64]:
        """Returns the score [n] before the cross-encoder: each candidate's from its own raw scores alone."""
        if late_scores is None:
            return first_stage_scores
        weighted: NDArray[np.float64] = self.first_stage * first_stage_scores + self.late * late_scores
        return weighted / (self.first_stage + self.late)

    def weights(self, *, late_heard: bool) -> Weights:
        """Returns the shares, which sum to 1, of the score before and of the cross-encoder's probability."""
        before = self.first_stage + (self.late if late_heard else 0.0)
        total = before + self.cross_encoder
        return Weights(before / total, self.cross_encoder / total)


def probability(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns 1 / (1 + exp(-logit)), in (0, 1) and rising with the logit; the logits themselves give the order."""
    # exp of a negative number only: it cannot overflow.
    decay = np.exp(-np.abs(logits))
    result: NDArray[np.float64] = np.where(logits >= 0, 1.0, decay) / (1.0 + decay)
    return result


def combine(
    first_stage_scores: NDArray[np.float64], logits: NDArray[np.float64], weights: Weights
) -> NDArray[np.float64]:
    """Returns w_first * first stage's raw score + w_cross * sigmoid(logit): [n], each from its own passage alone."""
    combined: NDArray[np.float64] = weights.first_stage * first_stage_scores.astype(
        np.float64
    ) + weights.cross_encoder * probability(logits)
    return combined


def rank(
    scores: NDArray[np.float64], logits: NDArray[np.float64], ranks: NDArray[np.int64], ids: Sequence[str]
) -> NDArray[np.intp]:
    """Returns the positions, best first: by score, then by logit, then by previous rank, then by id."""
    return np.lexsort((np.array(ids, dtype=np.str_), ranks, -logits, -scores))


def rank_from_logits(logits: NDArray[np.float64], ranks: NDArray[np.int64], ids: Sequence[str]) -> NDArray[np.intp]:
    """Returns the positions, best first: by logit, so saturated probabilities keep their order; ties as in `rank`."""
    return rank(logits, logits, ranks, ids)
