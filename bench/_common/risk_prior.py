"""Fits the prior that ships with the risk control: ridge logistic regression, sets weighing alike."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from bench._common.risk_cases import Cases
from retrieval.answers.risk.model import Prior

_RIDGE = 50.0
_STEPS = 30


def fit_prior(sets: Sequence[Cases]) -> Prior:
    """Fits weights to pairs by Newton's steps; the precision is a choice, not a fit."""
    features = np.concatenate([one.features for one in sets])
    labels = np.concatenate([one.correct for one in sets]).astype(np.float64)
    shares = np.concatenate([np.full(len(one.correct), 1.0 / len(one.correct)) for one in sets])
    shares /= shares.mean()
    center, scale = features.mean(axis=0), np.maximum(features.std(axis=0), 1e-6)
    inputs = np.column_stack(((features - center) / scale, np.ones(len(features))))
    ridge = np.diag([*[_RIDGE] * features.shape[1], 1e-6])
    weights = np.zeros(inputs.shape[1])
    for _ in range(_STEPS):
        chances = 1.0 / (1.0 + np.exp(-(inputs @ weights)))
        slope = inputs.T @ (shares * (labels - chances)) - ridge @ weights
        steepness = (inputs * (shares * chances * (1.0 - chances))[:, np.newaxis]).T @ inputs + ridge
        weights += np.linalg.solve(steepness, slope)
    precision = np.array([0.25, *[4.0] * (features.shape[1] - 1), 0.25])
    return Prior(center, scale, weights, precision)


def show_prior(prior: Prior) -> str:
    """Returns the prior as it stands in its module."""
    parts = ((name, getattr(prior, name)) for name in ("center", "scale", "weights", "precision"))
    lines = (f"    {name}=np.array([{', '.join(f'{number:.4g}' for number in array)}])," for name, array in parts)
    return "\n".join(("PRIOR = Prior(", *lines, ")"))
