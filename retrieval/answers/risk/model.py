"""The chance that a stored answer serves, by the features of the two questions: logistic regression, learned online.

Bayesian, with a normal prior that ships; each label moves the weights as far as the precision gathered so far allows
(a step to the posterior's mode along one direction, Laplace's approximation kept as precision). Old labels fade
slowly, back to the prior.

There are a few models, and each entry belongs to one of them. A model learns from all entries but its own, so what it
says of an entry's pairs was never fitted to them, and evidence that was gathered under older weights can be scored
anew and still be honest (cross-fitting; Chernozhukov et al., 2018).
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FOLDS = 4
_FADE = 1.0 / 20_000.0
_NEWTON_STEPS = 4


@dataclass(frozen=True, slots=True)
class Prior:
    """What is believed before any label: features are centred and scaled, then weighed; the last weight is the bias."""

    center: NDArray[np.float64]  # [features]
    scale: NDArray[np.float64]  # [features], positive
    weights: NDArray[np.float64]  # [features + 1]
    precision: NDArray[np.float64]  # [features + 1], of each weight apart

    def inputs(self, features: NDArray[np.float64]) -> NDArray[np.float64]:
        """Returns float64 [features + 1] of features [features]; far outliers are drawn in, lest one decides alone."""
        scaled = np.clip((features - self.center) / self.scale, -4.0, 4.0)
        return np.append(scaled, 1.0)


def fold_of(entry: bytes) -> int:
    """Returns the model that an entry belongs to."""
    return zlib.crc32(entry) % FOLDS


class PooledModels:
    """The models' weights float64 [FOLDS, inputs] and precisions float64 [FOLDS, inputs, inputs]."""

    def __init__(self, prior: Prior) -> None:
        self._prior_precision = np.diag(prior.precision)
        self.weights = np.tile(prior.weights, (FOLDS, 1))
        self.precisions = np.tile(self._prior_precision, (FOLDS, 1, 1))

    def logit(self, inputs: NDArray[np.float64], fold: int) -> float:
        """Returns the log odds that the answer serves, by the model of that fold."""
        return float(self.weights[fold] @ inputs)

    def learn(self, inputs: NDArray[np.float64], offset: float, fold: int, *, correct: bool) -> None:
        """Moves the weights of all models but the fold's; `offset` is what the entry adds to the log odds by itself."""
        others = np.arange(FOLDS) != fold
        precisions = self.precisions[others] * (1.0 - _FADE) + self._prior_precision * _FADE
        directions = np.linalg.solve(precisions, inputs[:, np.newaxis])[..., 0]  # [others, inputs]
        before = self.weights[others] @ inputs + offset
        after = _posterior_logits(before, directions @ inputs, correct=correct)
        chances = _chance(after)
        self.weights[others] += directions * (float(correct) - chances)[:, np.newaxis]
        steepness = (chances * (1.0 - chances))[:, np.newaxis, np.newaxis]
        self.precisions[others] = precisions + steepness * np.outer(inputs, inputs)


def _posterior_logits(
    before: NDArray[np.float64], variances: NDArray[np.float64], *, correct: bool
) -> NDArray[np.float64]:
    """Solves for the most likely log odds after a label: `after = before + variance * (label - chance(after))`."""
    after = before
    for _ in range(_NEWTON_STEPS):
        chances = _chance(after)
        excess = after - before - variances * (float(correct) - chances)
        after = after - excess / (1.0 + variances * chances * (1.0 - chances))
    return after


def _chance(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    chances: NDArray[np.float64] = 1.0 / (1.0 + np.exp(-np.clip(logits, -30.0, 30.0)))
    return chances
