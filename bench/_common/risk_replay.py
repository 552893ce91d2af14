"""What a fixed threshold and the risk control serve of the same pairs, and how often each is wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench._common.risk_cases import Cases
from retrieval.answers.risk import RiskControl


@dataclass(frozen=True, slots=True)
class Served:
    """Questions served, and those of them that were served wrongly."""

    hits: int
    errors: int

    @property
    def rate(self) -> float:
        """Errors per hit; 0 without hits."""
        return self.errors / self.hits if self.hits else 0.0


@dataclass(frozen=True, slots=True)
class Curve:
    """What every fixed threshold serves, from the highest down; pairs of equal score are served together."""

    hits: NDArray[np.int64]  # [levels], rising
    rates: NDArray[np.float64]  # [levels]

    def most(self, rate: float) -> int:
        """Returns the most hits at an error rate of at most `rate`; 0 when no threshold has that."""
        allowed = self.hits[self.rates <= rate + 1e-12]
        return int(allowed.max()) if len(allowed) else 0


def curve_of(scores: NDArray[np.float64], correct: NDArray[np.bool_]) -> Curve:
    """Returns the curve of thresholds on a score."""
    order = np.argsort(-scores, kind="stable")
    ends = np.flatnonzero(np.diff(scores[order], append=-np.inf) < 0.0)
    hits = ends + 1
    return Curve(hits, np.cumsum(~correct[order])[ends] / hits)


def tuned_threshold(cases: Cases, rate: float) -> float:
    """Returns the cosine that serves most of the pairs at an error rate of at most `rate`; infinity for none."""
    hits = curve_of(cases.cosines, cases.correct).most(rate)
    return float(np.sort(cases.cosines)[-hits]) if hits else float("inf")


def serve_fixed(cases: Cases, threshold: float) -> Served:
    """Serves what reaches a cosine."""
    served = cases.cosines >= threshold
    return Served(int(served.sum()), int((served & ~cases.correct).sum()))


def replay(tune: Cases, test: Cases, max_error_rate: float, shadow_share: float, seed: int) -> Served:
    """Lets a new control learn one half as evidence, and then judge the other, learning from what it may see.

    It sees the labels of what it does not serve and of a sample of what it does. `seed` gives the order and the sample.
    """
    random = np.random.default_rng(seed)
    control = RiskControl()
    for place in random.permutation(len(tune.entries)):
        _judge(control, tune, int(place), 0.0, 1.0, random)
    hits = errors = 0
    for place in random.permutation(len(test.entries)):
        if _judge(control, test, int(place), max_error_rate, shadow_share, random):
            hits += 1
            errors += not test.correct[place]
    return Served(hits, errors)


def scores_of(tune: Cases, test: Cases, seed: int) -> NDArray[np.float64]:
    """Returns our score of each pair to measure on, as it was when it was judged, by a control that serves nothing."""
    random = np.random.default_rng(seed)
    control = RiskControl()
    for place in random.permutation(len(tune.entries)):
        _judge(control, tune, int(place), 0.0, 1.0, random)
    scores = np.zeros(len(test.entries))
    for place in random.permutation(len(test.entries)):
        entry, features = test.entries[place], test.features[place]
        judgement = control.judge(entry, features, 0.0)
        control.learn(entry, judgement, features, bool(test.correct[place]))
        scores[place] = judgement.score
    return scores


def _judge(
    control: RiskControl, cases: Cases, place: int, rate: float, share: float, random: np.random.Generator
) -> bool:
    entry, features = cases.entries[place], cases.features[place]
    judgement = control.judge(entry, features, rate)
    sampled = share if judgement.serve else 1.0
    if random.random() < sampled:
        control.learn(entry, judgement, features, bool(cases.correct[place]), sampled)
    return judgement.serve
