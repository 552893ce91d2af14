"""Whether a cross-encoder earns its place: nDCG@10 over the first stage's own order, on queries that nothing saw.

The weight that the cross-encoder's opinion gets is chosen on dev queries; test queries judge once. The model passes
when the mean over the sets rises by `least_gain` and no set falls by more than `largest_loss`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from rerank.calibrate import Mixture, combine, rank
from rerank.ndcg import NDCG_CUT, ndcg
from rerank.training.pools import Pool

SHARES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4)
"""The weights that are tried, as shares of what fusion and late interaction weigh together."""


@dataclass(frozen=True, slots=True)
class ScoredPool:
    """A pool, and the cross-encoder's logit of each passage that retrieval found."""

    pool: Pool
    logits: NDArray[np.float64]  # [found_count]


@dataclass(frozen=True, slots=True)
class SetFigures:
    """nDCG@10 of a set's queries, each before and after, in the same order."""

    name: str
    before: tuple[float, ...]
    after: tuple[float, ...]

    @property
    def gain(self) -> float:
        """The mean after, less the mean before."""
        return float(np.mean(self.after) - np.mean(self.before))


@dataclass(frozen=True, slots=True)
class Gate:
    """What a model must reach."""

    least_gain: float = 0.005  # of the mean over the sets
    largest_loss: float = 0.01  # of any one set

    def objection(self, figures: Sequence[SetFigures]) -> str | None:
        """Returns why the model does not pass; None when it does."""
        if not figures:
            return "there is no held-out set to judge it on"
        gain = mean_gain(figures)
        if gain < self.least_gain:
            return f"mean nDCG@{NDCG_CUT} changes by {gain:+.4f}, {self.least_gain:+} is needed"
        worst = min(figures, key=lambda one: one.gain)
        if worst.gain < -self.largest_loss:
            return f"nDCG@{NDCG_CUT} of {worst.name} changes by {worst.gain:+.4f}, {-self.largest_loss:+} is allowed"
        return None


def mean_gain(figures: Sequence[SetFigures]) -> float:
    """Returns the mean over the sets of their gains: every set counts the same."""
    return float(np.mean([one.gain for one in figures]))


def judge(name: str, pools: Sequence[ScoredPool], mixture: Mixture) -> SetFigures:
    """Returns the figures of a set, after: with the cross-encoder at its weight in the mixture; before: without it."""
    without = replace(mixture, cross_encoder=0.0)
    before = tuple(_ndcg_of(one, without) for one in pools)
    return SetFigures(name, before, tuple(_ndcg_of(one, mixture) for one in pools))


def choose_weight(dev: Mapping[str, Sequence[ScoredPool]], base: Mixture, gate: Gate) -> Mixture:
    """Returns the mixture with the cross-encoder's weight that has the greatest mean gain on dev queries.

    Weights that hurt a set are passed over; it is 0 if none helps.
    """
    chosen, best = replace(base, cross_encoder=0.0), 0.0
    for share in SHARES:
        mixture = replace(base, cross_encoder=round(share * (base.first_stage + base.late), 4))
        figures = [judge(name, pools, mixture) for name, pools in dev.items()]
        harmless = all(one.gain >= -gate.largest_loss for one in figures)
        if figures and harmless and mean_gain(figures) > best:
            chosen, best = mixture, mean_gain(figures)
    return chosen


def _ndcg_of(scored: ScoredPool, mixture: Mixture) -> float:
    pool, count = scored.pool, scored.pool.found_count
    scores = pool.base(mixture)[:count]
    if mixture.cross_encoder:
        scores = combine(scores, scored.logits, mixture.weights(late_heard=pool.late is not None))
    order = rank(scores, np.zeros(count), np.arange(count), pool.passage_ids[:count])
    # A document stands at the place of its best passage.
    ranking = list(dict.fromkeys(pool.text_ids[place] for place in order))
    return ndcg(ranking, pool.relevant)
