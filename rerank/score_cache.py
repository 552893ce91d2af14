"""Logits that were computed before: a pair that is asked again costs no run of the model.

A logit depends on the model, the query and the passage's text, and on nothing else.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class Asker:
    """Whose pairs these are, and of which model and query."""

    tenant: str
    revision: str  # of the cross-encoder; its limit on tokens is part of it
    query: str


class ScoreCache(Protocol):
    """Logits by (tenant, model revision, query, passage text)."""

    def get(self, asker: Asker, passages: Sequence[str]) -> NDArray[np.float64]:
        """Returns float64 [n]; NaN for a pair that is not known."""
        ...

    def put(self, asker: Asker, passages: Sequence[str], logits: NDArray[np.float64]) -> None:
        """Stores logits that the model gave for the passages, [n]."""
        ...
