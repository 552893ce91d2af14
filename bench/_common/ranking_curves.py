"""How well a score tells two classes apart, and the logistic function that tells them apart best."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_STEPS = 50
_RIDGE = 1e-6  # keeps the weights finite where classes can be told apart without fault


def roc_area(scores: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """Returns the area under the ROC curve: how often a positive scores above a negative, ties counting half.

    It is NaN when one of the classes is empty (Mann and Whitney 1947).
    """
    ups, downs = int(positive.sum()), int((~positive).sum())
    if not (ups and downs):
        return float("nan")
    _, place, counts = np.unique(scores, return_inverse=True, return_counts=True)
    mean_ranks = np.cumsum(counts) - (counts - 1) / 2
    return float((mean_ranks[place][positive].sum() - ups * (ups + 1) / 2) / (ups * downs))


def fit_logistic(
    inputs: NDArray[np.float64], positive: NDArray[np.bool_], weights: NDArray[np.float64]
) -> NDArray[np.float64]:  # [features + 1], the intercept last
    """Returns the weights of a logistic regression of weighted examples [n, features], by Newton's method."""
    design = np.column_stack([inputs, np.ones(len(inputs))])
    found = np.zeros(design.shape[1])
    for _ in range(_STEPS):
        expected = 1.0 / (1.0 + np.exp(-design @ found))
        gradient = design.T @ (weights * (positive - expected)) - _RIDGE * found
        curvature = (design * (weights * expected * (1.0 - expected))[:, None]).T @ design
        step = np.linalg.solve(curvature + _RIDGE * np.eye(len(found)), gradient)
        found = found + step
        if np.abs(step).max() < 1e-9:
            break
    return found
