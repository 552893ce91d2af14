"""What the evidence certifies: from which score on the error rate stays within a bound, with confidence.

The hypotheses "the answers that score at least t err more often than allowed" are tested from the top down, and t goes
no further than the tests hold (fixed-sequence testing of Learn-then-Test, Angelopoulos et al., arXiv 2110.01052): so
many tests cost no more confidence than one. Levels with too few labels to hold even without an error are passed over,
which looks at no label. A single wrong label among the first would end it all, so after a failure the sequence starts
anew where there are a few times as many labels; each start is paid for with its part of the confidence.

A threshold is certified with a confidence of three quarters. What is served errs less than the bound in the mean, since
the threshold stops where a bound, not the rate, meets it: on simulated streams 0.12, 0.31 and 1.2 % were wrong under
bounds of 0.5, 1 and 2 % (`python -m bench.risk`). At nine tenths it was 0.11, 0.22 and 0.68 %, after 1.5 times the
labels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.answers.risk.bounds import least_trials, upper_bounds
from retrieval.answers.risk.evidence import Ranked

CONFIDENCE = 0.75
_STARTS = 2
_JUMP = 2.5  # from a failure's labels to the next start's
_GROWTH = 1.12  # from one level's labels to the next's
_FIRST_LEVEL = 8


@dataclass(frozen=True, slots=True)
class Certificate:
    """Upper confidence bounds of the error rate at and above each of some scores."""

    scores: NDArray[np.float64]  # [levels], falling
    trials: NDArray[np.float64]  # [levels], effective numbers, rising by and large
    bounds: NDArray[np.float64]  # [levels]

    @classmethod
    def of(cls, ranked: Ranked) -> Certificate:
        """Reads the levels off the evidence."""
        last = _levels(ranked.scores)
        counted = ranked.weights * ranked.trials
        mass = np.cumsum(counted)[last]
        squares = np.cumsum(counted * ranked.weights)[last]
        wrong = np.cumsum(ranked.weights * ranked.errors)[last]
        trials = np.divide(mass**2, squares, out=np.zeros(len(last)), where=squares > 0.0)
        rates = np.divide(wrong, mass, out=np.ones(len(last)), where=mass > 0.0)
        bounds = upper_bounds(np.minimum(rates, 1.0) * trials, trials, _each_confidence())
        return cls(ranked.scores[last], trials, bounds)

    def threshold(self, max_error_rate: float) -> float:
        """Returns the lowest score that is certified; infinity when none is."""
        if max_error_rate <= 0.0:
            return np.inf
        found, failures = np.inf, 0
        needed = least_trials(max_error_rate, _each_confidence())
        for place in range(len(self.scores)):
            if self.trials[place] < needed:
                continue
            if self.bounds[place] <= max_error_rate:
                found = float(self.scores[place])
                continue
            failures += 1
            if failures == _STARTS:
                break
            needed = _JUMP * self.trials[place]
        return found

    def bound(self, score: float) -> tuple[float, int]:
        """Returns the error rate's bound at and above a score, and the effective number of labels; 1 and 0 for none."""
        # The scores fall; the first level that reaches down to this one.
        place = int(np.searchsorted(-self.scores, -score))
        if place >= len(self.scores):
            return (1.0, 0) if not len(self.scores) else (float(self.bounds[-1]), int(self.trials[-1]))
        return float(self.bounds[place]), int(self.trials[place])


def _each_confidence() -> float:
    return 1.0 - (1.0 - CONFIDENCE) / _STARTS


def _levels(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Returns where the levels end, each so much larger than the one before; equal scores are never parted."""
    count = len(scores)
    if count < _FIRST_LEVEL:
        return np.zeros(0, dtype=np.int64)
    steps = int(np.log(count / _FIRST_LEVEL) / np.log(_GROWTH)) + 1
    ends = np.append((_FIRST_LEVEL * _GROWTH ** np.arange(steps)).astype(np.int64), count) - 1
    last: NDArray[np.int64] = np.searchsorted(-scores, -scores[ends], side="right") - 1
    return np.unique(last)
