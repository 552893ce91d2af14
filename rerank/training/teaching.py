"""What a teacher says of pairs: the first stage's own calibrated score, or a larger cross-encoder."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from rerank.training.lists import TrainingList
from rerank.types import Reranker


@dataclass(frozen=True, slots=True)
class TaughtPair:
    """A pair with its teacher's logit."""

    query: str
    passage: str
    logit: float


def taught_by_base(lists: Sequence[TrainingList]) -> list[TaughtPair]:
    """Returns all pairs with their base score as a logit: mean 0 and deviation 2 over all of them.

    No label is used, so any heading is a query. A deviation of 2 spreads the probabilities over most of 0 to 1.
    """
    if not lists:
        return []
    scores = np.concatenate([one.base for one in lists])
    middle, spread = float(scores.mean()), float(scores.std()) or 1.0
    return [
        TaughtPair(one.query, passage, 2.0 * (float(score) - middle) / spread)
        for one in lists
        for passage, score in zip(one.passages, one.base, strict=True)
    ]


def taught_by_model(lists: Iterable[TrainingList], teacher: Reranker) -> list[TaughtPair]:
    """Returns all pairs with the logits of a cross-encoder."""
    return [
        TaughtPair(one.query, passage, float(logit))
        for one in lists
        for passage, logit in zip(one.passages, teacher.score(one.query, one.passages), strict=True)
    ]
