"""Upper confidence bounds of an error rate: Clopper and Pearson (1934), for counts that need not be whole.

The bound is the rate at which no more than the seen share of errors would have only the remaining chance, which is a
quantile of Beta(errors + 1, trials - errors). Weighted evidence has an effective number of trials (Kish, 1965) that is
no whole number, and the beta distribution does not mind. NumPy has no beta quantile; the fraction below gives its
distribution function, and a few of Newton's steps from the Poisson bound invert it.
"""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from numpy.typing import NDArray

# Nobody accepts that more answers are wrong than right, so bounds above a half all read 1.
_HIGHEST = 0.5
_LOWEST = 1e-12
_STEPS = 12
_PRECISION = 1e-7
_FRACTION_TERMS = 30


def upper_bounds(errors: NDArray[np.float64], trials: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """Returns float64 [n]: the rates that the true error rate exceeds with chance `1 - confidence` at most.

    `errors` and `trials` are float64 [n], effective counts, 0 <= errors <= trials. 1 stands for all above 0.5, and for
    less than one trial.
    """
    bounds = np.ones(len(errors))
    guesses = _poisson_bounds(errors, confidence) / np.maximum(trials, 1.0)
    # The Poisson bound is too high, but never twice: where it says so much, no bound below a half can come out.
    likely = np.flatnonzero((trials >= 1.0) & (errors < _HIGHEST * trials) & (guesses < 2.0 * _HIGHEST))
    if len(likely):
        found = _beta_quantiles(errors[likely] + 1.0, trials[likely] - errors[likely], confidence, guesses[likely])
        bounds[likely] = np.where(found < _HIGHEST, found, 1.0)
    return bounds


def least_trials(rate: float, confidence: float) -> float:
    """Returns how many trials without an error it takes until the upper bound is `rate`; `rate` is in (0, 1)."""
    return math.log(1.0 - confidence) / math.log1p(-rate)


def _poisson_bounds(errors: NDArray[np.float64], confidence: float) -> NDArray[np.float64]:
    """Returns the upper bounds of Poisson means (Wilson and Hilferty's cube-root approximation of chi-square, 1931)."""
    freedom = 2.0 * (errors + 1.0)
    spread = 2.0 / (9.0 * freedom)
    bounds: NDArray[np.float64] = (
        0.5 * freedom * (1.0 - spread + NormalDist().inv_cdf(confidence) * np.sqrt(spread)) ** 3
    )
    return bounds


def _beta_quantiles(
    a: NDArray[np.float64], b: NDArray[np.float64], share: float, guesses: NDArray[np.float64]
) -> NDArray[np.float64]:
    log_beta = np.array([math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y) for x, y in zip(a, b, strict=True)])
    low, high = (a - 1.0) / (a + b - 1.0), np.full(len(a), _HIGHEST)
    rates = np.clip(guesses, low, high)
    for _ in range(_STEPS):
        density = np.exp((a - 1.0) * np.log(rates) + (b - 1.0) * np.log1p(-rates) - log_beta)
        # The rate stays above the mean, so the fraction is taken from the other end, where it converges quickly.
        above = density * rates * (1.0 - rates) / b * _fraction(1.0 - rates, b, a)
        excess = (1.0 - above) - share
        low, high = np.where(excess < 0.0, rates, low), np.where(excess < 0.0, high, rates)
        # Newton's step, or half of what is left where that leads out of it.
        step = rates - excess / np.maximum(density, _LOWEST)
        rates = np.where((step > low) & (step <= high), step, 0.5 * (low + high))
        if bool(np.all((np.abs(excess) < _PRECISION) | (high - low < _PRECISION))):
            break
    return rates


def _fraction(x: NDArray[np.float64], a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Returns the continued fraction that x^a (1-x)^b / (a B(a, b)) makes I_x(a, b) of (DLMF 8.17.22)."""
    value = np.ones(len(x))
    for m in range(_FRACTION_TERMS, -1, -1):
        even = (m + 1.0) * (b - m - 1.0) * x / ((a + 2.0 * m + 1.0) * (a + 2.0 * m + 2.0))
        odd = (a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0))
        value = 1.0 - odd / (1.0 + even / value)
    return 1.0 / value
