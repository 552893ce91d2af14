"""What a difference between two arms is worth, and the quantiles of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

RESAMPLES = 10_000
SEED = 20_261_130
_BLOCK = 500


@dataclass(frozen=True, slots=True)
class Difference:
    """The mean of a paired difference with its 95 % interval."""

    mean: float
    low: float
    high: float

    @property
    def certain(self) -> bool:
        """Whether the interval leaves zero out."""
        return self.low > 0.0 or self.high < 0.0


@dataclass(frozen=True, slots=True)
class Quantiles:
    """Percentiles of times, in milliseconds."""

    p50_ms: float
    p95_ms: float
    p99_ms: float
    max_ms: float
    count: int


def paired_difference(
    ours: Sequence[float], theirs: Sequence[float], resamples: int = RESAMPLES, seed: int = SEED
) -> Difference:
    """Bootstraps the mean of `ours - theirs` over the queries (percentile interval; Efron and Tibshirani, 1993).

    Raises:
        ValueError: the two do not belong to the same queries, or there are none.
    """
    difference = np.asarray(ours, dtype=np.float64) - np.asarray(theirs, dtype=np.float64)
    return mean_difference([difference], resamples, seed)


def mean_difference(
    differences: Sequence[NDArray[np.float64]], resamples: int = RESAMPLES, seed: int = SEED
) -> Difference:
    """Bootstraps the mean over sets of their mean differences; queries are drawn anew within each set.

    Raises:
        ValueError: there is no set, or a set has no queries.
    """
    if not differences or any(len(difference) == 0 for difference in differences):
        raise ValueError("a bootstrap needs at least one query in each set")
    random = np.random.default_rng(seed)
    means = np.mean([_resampled_means(difference, resamples, random) for difference in differences], axis=0)
    low, high = np.quantile(means, (0.025, 0.975))
    return Difference(float(np.mean([difference.mean() for difference in differences])), float(low), float(high))


def quantiles(times_ns: Sequence[int] | NDArray[np.int64]) -> Quantiles:
    """Returns the percentiles of times in nanoseconds, as milliseconds; all zero without any."""
    if len(times_ns) == 0:
        return Quantiles(0.0, 0.0, 0.0, 0.0, 0)
    times_ms = np.asarray(times_ns, dtype=np.float64) / 1e6
    p50, p95, p99 = np.percentile(times_ms, (50, 95, 99))
    return Quantiles(float(p50), float(p95), float(p99), float(times_ms.max()), len(times_ms))


def _resampled_means(values: NDArray[np.float64], resamples: int, random: np.random.Generator) -> NDArray[np.float64]:
    means = np.empty(resamples)
    for start in range(0, resamples, _BLOCK):
        stop = min(start + _BLOCK, resamples)
        means[start:stop] = values[random.integers(0, len(values), (stop - start, len(values)))].mean(axis=1)
    return means
