"""When more pairs would change too little: how much better the result can still be expected to become.

A result is valued by its scores above its own last place, discounted by rank as in nDCG. The rule asks what share of
that value the unscored candidates are expected to add, each by itself. A logit is predicted from the candidate's score
before the cross-encoder by a line, moved by a share of how far the query's logits so far came out above or below
theirs. There is a line for each number of good candidates found so far, since a question that has its one answer is not
expected to have a second. How far a logit exceeds its prediction is not assumed to be normal: the margins are empirical
quantiles. All of it is learned from scored pools and lives in the settings. A candidate that no logit could lift into
the result adds nothing, exactly.

Counting the candidates that are expected to enter instead, all the same, was tried and is worse: with a strong
cross-encoder most of the result's places go to candidates that are all equally irrelevant, and settling which of them
enter costs nearly the whole pool.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.calibrate import Weights, combine, probability

EXCEEDANCES = (0.95, 0.75, 0.5, 0.25, 0.1, 0.05, 0.01, 0.002)
"""The margins' probabilities: margin i is exceeded by this share of the logits."""


@dataclass(frozen=True, slots=True)
class Line:
    """How a logit is predicted: intercept + slope * score before + carry * mean residual of the scored pairs."""

    intercept: float
    slope: float
    carry: float  # the share of what the scored pairs' logits have in common that the others are expected to share
    margins: tuple[float, ...]  # [len(EXCEEDANCES)], not falling; logit minus prediction


@dataclass(frozen=True, slots=True)
class StopRule:
    """What was learned about a cross-encoder behind certain first stages, and how little is little enough."""

    tolerance: float  # the share of the result's value that may be expected to be missed
    lines: tuple[Line, ...]  # at least one; line i for i good candidates among the scored, the last for more too

    def expected_gain(
        self, base: NDArray[np.float64], logits: NDArray[np.float64], weights: Weights, top_k: int
    ) -> float:
        """Returns the share by which the unscored are expected to raise the value of the best `top_k`.

        `base` and `logits` are [n]; a logit is NaN where the pair was not scored. Infinity while fewer than `top_k` are
        scored and others are left.
        """
        waiting = np.isnan(logits)
        known = ~waiting
        if not waiting.any():
            return 0.0
        if np.count_nonzero(known) < top_k:
            return math.inf
        result = np.sort(combine(base[known], logits[known], weights))[::-1][:top_k]
        possible = self._possible_logits(base, logits)
        scores = weights.first_stage * base[waiting, np.newaxis] + weights.cross_encoder * probability(possible)
        added = float((_added_value(result, scores) @ _MASSES).sum())
        value = float((result - result[-1]) @ _discounts(top_k))
        return added / value if value > 0.0 else math.inf if added > 0.0 else 0.0

    def line_for(self, logits: NDArray[np.float64]) -> Line:
        """Returns the line for scored pairs [n]: by how many of them are more likely good than not."""
        good = int(np.count_nonzero(logits > 0.0))
        return self.lines[min(good, len(self.lines) - 1)]

    def _possible_logits(self, base: NDArray[np.float64], logits: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns what each unscored candidate's logit may be, [unscored, margins]."""
        known = ~np.isnan(logits)
        line = self.line_for(logits[known])
        predicted = line.intercept + line.slope * base
        shift = line.carry * (logits - predicted)[known].mean()
        possible: NDArray[np.float64] = predicted[~known, np.newaxis] + shift + np.array(line.margins)
        return possible


def is_certain(base: NDArray[np.float64], margin: float) -> bool:
    """Whether the best candidate is ahead of the next by the margin; `base` is [n], falling. A margin of 0 never is."""
    return margin > 0.0 and len(base) > 1 and bool(base[0] - base[1] >= margin)


def _added_value(result: NDArray[np.float64], scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns by how much each of `scores`, of any shape, would raise the discounted sum of `result` [k], which falls.

    What is entered pushes those behind it down by a place, and the last one out.
    """
    discounts = np.append(_discounts(len(result)), 0.0)
    pushed = result * (discounts[1:] - discounts[:-1])
    behind = np.append(np.cumsum(pushed[::-1])[::-1], 0.0)
    places = np.searchsorted(-result, -scores, side="right")
    added: NDArray[np.float64] = np.where(places < len(result), scores * discounts[places] + behind[places], 0.0)
    return np.maximum(added, 0.0)


def _discounts(count: int) -> NDArray[np.float64]:
    discounts: NDArray[np.float64] = 1.0 / np.log2(np.arange(2, count + 2))
    return discounts


def _masses() -> NDArray[np.float64]:
    """Returns the share of the logits that each margin stands for: those nearer to it than to the next ones."""
    shares = np.array(EXCEEDANCES)
    bounds = np.concatenate(([1.0], (shares[1:] + shares[:-1]) / 2, [0.0]))
    masses: NDArray[np.float64] = bounds[:-1] - bounds[1:]
    return masses


_MASSES = _masses()
