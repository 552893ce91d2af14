"""How a model is trained: the settings of one run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

Loss: TypeAlias = Literal["listnet", "lambda"]

DEPTHS = (2, 3, 4, 6)


@dataclass(frozen=True, slots=True)
class Recipe:
    """What shapes the weights, besides the data."""

    start: Path  # a bi-encoder, as sentence-transformers saves it
    depth: int = 3  # its first layers that are kept
    max_tokens: int = 160  # of a pair
    loss: Loss = "listnet"
    epochs: float = 1.0
    lists_per_step: int = 8
    learning_rate: float = 8e-5
    warmup_share: float = 0.1
    base_trust: float = 0.5  # share of the fitted scale; at 1 the first stage leaves next to nothing to learn from
    cross_weight: float = 0.5  # of the cross-encoder's probability in the score that is learnt
    checkpoint_steps: int = 50
    seed: int = 20_261_130
