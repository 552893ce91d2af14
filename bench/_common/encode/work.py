"""Texts of chosen lengths for the encoder, already tokenized, and the parts they run on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from encoders.curve import Sample, sample_of
from encoders.open import ScheduledDenseEncoder
from encoders.scheduler import TokenScheduler
from encoders.types import Outcome, TokenizedText
from encoders.vector_engine import VectorEngine

SHORTEST = 8
QUERY = "which seal fits the pump of the small turbine"


@dataclass(frozen=True, slots=True)
class Parts:
    """A scheduler, the encoder behind it, and its engine."""

    scheduler: TokenScheduler
    dense: ScheduledDenseEncoder
    engine: VectorEngine  # of the encoder, to be run bare
    sample: Sample
    longest: int
    workers: int

    @classmethod
    def of(cls, scheduler: TokenScheduler, dense: ScheduledDenseEncoder) -> Parts:
        """Puts them together; texts are at most 256 tokens long, as chunks are."""
        sample = sample_of(dense.tokenization, paired=False)
        return cls(scheduler, dense, dense.engine, sample, min(256, dense.max_tokens), scheduler.stats().workers)

    def mixed(self, count: int, seed: int) -> list[TokenizedText]:
        """Returns texts whose lengths are spread evenly over the orders of magnitude."""
        drawn = np.exp(np.random.default_rng(seed).uniform(np.log(SHORTEST), np.log(self.longest), count))
        return [self.sample(int(tokens)) for tokens in drawn]

    def long(self, count: int) -> list[TokenizedText]:
        """Returns texts at the limit, as a bulk job has them."""
        return [self.sample(self.longest)] * count


def tokens_of(items: Sequence[TokenizedText]) -> int:
    """Counts the tokens of texts."""
    return sum(item.token_count for item in items)


def require_values(outcomes: Sequence[Outcome[Any]]) -> None:
    """Stops the run when something was not computed: a rate of failures is no rate."""
    failed = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
    if failed is not None:
        raise SystemExit(f"a text was not encoded: {failed}")
