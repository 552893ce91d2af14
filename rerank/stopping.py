"""When more pairs would change nothing: how many unscored candidates can still be expected to enter the best.

A logit is predicted from the candidate's score before the cross-encoder by a line, moved by how far the query's logits
so far came out above or below theirs. How far a logit exceeds its prediction is not assumed to be normal: the margins
are empirical quantiles. Line and margins are learned from scored pools and live in the settings. Where no logit at all
could lift a candidate high enough, it is excluded exactly.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.calibrate import Weights, combine

EXCEEDANCES = (0.95, 0.75, 0.5, 0.25, 0.1, 0.05, 0.01, 0.002)
"""The margins' probabilities: margin i is exceeded by this share of the logits."""


@dataclass(frozen=True, slots=True)
class StopRule:
    """What was learned about a cross-encoder behind certain first stages, and how sure is sure enough."""

    tolerance: float  # candidates that may be expected to be missed
    intercept: float  # predicted logit = intercept + slope * score before
    slope: float
    prior_pairs: float  # scored pairs that the line's own height is worth
    margins: tuple[float, ...]  # [len(EXCEEDANCES)], not falling; logit minus prediction

    def expected_entrants(
        self, base: NDArray[np.float64], logits: NDArray[np.float64], weights: Weights, top_k: int
    ) -> float:
        """Returns the expected number of unscored candidates that would enter the best `top_k`.

        `base` and `logits` are [n]; a logit is NaN where the pair was not scored. Infinity while fewer than `top_k` are
        scored and others are left.
        """
        waiting = np.isnan(logits)
        if not waiting.any():
            return 0.0
        known = ~waiting
        if np.count_nonzero(known) < top_k:
            return math.inf
        least = np.partition(combine(base[known], logits[known], weights), -top_k)[-top_k]
        needed = needed_logits(base[waiting], float(least), weights)
        predicted = self.intercept + self.slope * base
        shift = (logits - predicted)[known].sum() / (np.count_nonzero(known) + self.prior_pairs)
        return float(self.exceedance(needed - predicted[waiting] - shift).sum())

    def exceedance(self, margins: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns the share of the logits that come out above their prediction by more than this, [n]."""
        found: NDArray[np.float64] = np.interp(margins, self.margins, EXCEEDANCES, left=1.0, right=0.0)
        return found


def needed_logits(base: NDArray[np.float64], least: float, weights: Weights) -> NDArray[np.float64]:
    """Returns the logit [n] at which each candidate reaches `least`; infinity where none does, minus where all do."""
    probabilities = (least - weights.first_stage * base) / weights.cross_encoder
    with np.errstate(divide="ignore"):
        logits: NDArray[np.float64] = np.log(np.clip(probabilities, 0.0, 1.0)) - np.log1p(
            -np.clip(probabilities, 0.0, 1.0)
        )
    return logits


def is_certain(base: NDArray[np.float64], margin: float) -> bool:
    """Whether the best candidate is ahead of the next by the margin; `base` is [n], falling. A margin of 0 never is."""
    return margin > 0.0 and len(base) > 1 and bool(base[0] - base[1] >= margin)
