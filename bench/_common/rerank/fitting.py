"""Learns a stop rule from pools that were scored to the end: its lines with their margins.

Each pool is stopped at several depths, as the rule would see it: what is scored says which line holds, and what is not
is what the line has to predict. A line is fitted by least squares on the scores before; then what is left of the
unscored logits on what is left of the scored ones, in the mean, which gives the share that is carried over; and margins
are quantiles of what is left after that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from bench._common.rerank.pools import RerankPool
from rerank.stopping import EXCEEDANCES, Line, StopRule

_STEP = 4  # pairs between two depths at which a pool is stopped
_LEAST_SEEN = 100  # unscored logits that a line needs; with fewer it is the one before


_Stopped: TypeAlias = "tuple[RerankPool, int]"  # a pool, and how many of its pairs are scored


def fit_rule(pools: Sequence[RerankPool], top_k: int, tolerance: float, lines: int = 4) -> StopRule:
    """Returns the rule that these pools teach; where few pools stop at a line, it is like the one before.

    Raises:
        ValueError: no pool is deeper than `top_k`.
    """
    groups: list[list[_Stopped]] = [[] for _ in range(lines)]
    for pool in pools:
        for depth in range(top_k, len(pool.base), _STEP):
            good = int(np.count_nonzero(pool.logits[:depth] > 0.0))
            groups[min(good, lines - 1)].append((pool, depth))
    everything = [stopped for group in groups for stopped in group]
    if not everything:
        raise ValueError(f"a stop rule is learned from pools of more than {top_k} candidates; raise the depth")
    found: list[Line] = []
    for group in groups:
        enough = sum(len(pool.base) - depth for pool, depth in group) >= _LEAST_SEEN
        found.append(_line(group) if enough else found[-1] if found else _line(everything))
    return StopRule(tolerance, tuple(found))


def _line(group: Sequence[_Stopped]) -> Line:
    slope, intercept = _fit(
        np.concatenate([pool.base[depth:] for pool, depth in group]),
        np.concatenate([pool.logits[depth:] for pool, depth in group]),
    )
    left = [pool.logits - intercept - slope * pool.base for pool, _ in group]
    scored = np.concatenate(
        [np.full(len(one) - depth, one[:depth].mean()) for one, (_, depth) in zip(left, group, strict=True)]
    )
    unscored = np.concatenate([one[depth:] for one, (_, depth) in zip(left, group, strict=True)])
    carry, height = _fit(scored, unscored)
    margins = np.quantile(unscored - height - carry * scored, [1.0 - share for share in EXCEEDANCES])
    # The rule takes the residuals of the scored pairs from the raised line.
    raised = height / (1.0 - carry) if carry < 0.9 else 0.0
    return Line(intercept + raised, slope, carry, tuple(float(one) for one in margins))


def _fit(x: NDArray[np.float64], y: NDArray[np.float64]) -> tuple[float, float]:
    """Returns slope and intercept by least squares; a line that would fall is level."""
    centred = x - x.mean()
    spread = float(centred @ centred)
    slope = max(0.0, float(centred @ y) / spread) if spread > 0.0 else 0.0
    return slope, float(y.mean() - slope * x.mean())
