"""Simulated streams of similar questions whose chance of a wrong answer is known, and what a control makes of them.

A stream has entries of unequal popularity (Zipf), each with its own threshold: the log odds that its answer serves are
a function of the question's features plus an offset of the entry. Labels are drawn from that, so the true error rate of
what is served is known, not only the errors that happened. In the drifting variant a third of the entries changes
halfway: their answers become wrong for most wordings.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from retrieval.answers.risk import RiskControl
from retrieval.answers.risk.prior import PRIOR

_MOST = 400_000
_NOISE = 0.6  # of a feature that the model does not see, in log odds


@dataclass(frozen=True, slots=True)
class StreamLaw:
    """How a stream is made."""

    entries: int = 400
    entry_spread: float = 1.5  # standard deviation of the entries' offsets, in log odds
    drift_after: int = 0  # questions after which a third of the entries turns bad; 0 for never
    drift: float = -4.0  # what their log odds change by


@dataclass(frozen=True, slots=True)
class Streamed:
    """What came of a stream."""

    seen: int
    served: int
    errors: int
    expected_errors: float  # the sum of the true chances of what was served
    labels_before_first: int  # labels until the first question was served
    alarms: int


@dataclass(frozen=True, slots=True)
class Truth:
    """What decides whether an answer serves, in the scale of the prior's inputs."""

    weights: NDArray[np.float64]  # [inputs]
    offsets: NDArray[np.float64]  # [entries]
    popularity: NDArray[np.float64]  # [entries], sums to 1


def truth_of(law: StreamLaw, random: np.random.Generator) -> Truth:
    """Draws a truth that the shipped prior is right about in direction only."""
    weights = 2.0 * PRIOR.weights + random.normal(0.0, 0.4, len(PRIOR.weights))
    offsets = random.normal(0.0, law.entry_spread, law.entries)
    popularity = 1.0 / np.arange(1, law.entries + 1)
    return Truth(weights, offsets, popularity / popularity.sum())


def run_stream(law: StreamLaw, max_error_rate: float, wanted: int, shadow_share: float, seed: int) -> Streamed:
    """Feeds a control questions until `wanted` of them were served, or 400,000 seen."""
    random = np.random.default_rng(seed)
    truth, control = truth_of(law, random), RiskControl()
    served = errors = seen = learned = first = 0
    expected = 0.0
    while served < wanted and seen < _MOST:
        seen += 1
        entry = int(random.choice(law.entries, p=truth.popularity))
        features, chance = _question(law, truth, entry, seen, random)
        correct = bool(random.random() < chance)
        name = entry.to_bytes(8, "little")
        judgement = control.judge(name, features, max_error_rate)
        if judgement.serve:
            first = first if served else learned
            served, errors, expected = served + 1, errors + (not correct), expected + 1.0 - chance
        share = shadow_share if judgement.serve else 1.0
        if random.random() < share:
            control.learn(name, judgement, features, correct, share)
            learned += 1
    return Streamed(seen, served, errors, expected, first, control.figures.alarms)


def _question(
    law: StreamLaw, truth: Truth, entry: int, place: int, random: np.random.Generator
) -> tuple[NDArray[np.float64], float]:
    # Features move together, as the figures of one pair of questions do.
    inputs = random.normal(0.0, 1.0) * np.sign(PRIOR.weights[:-1]) + random.normal(0.0, 0.7, len(PRIOR.center))
    drifted = law.drift_after and place > law.drift_after and entry % 3 == 0
    logit = truth.weights[:-1] @ inputs + truth.weights[-1] + truth.offsets[entry] + random.normal(0.0, _NOISE)
    chance = 1.0 / (1.0 + np.exp(-(logit + (law.drift if drifted else 0.0))))
    return PRIOR.center + PRIOR.scale * inputs, float(chance)
