"""What a token costs on this machine, measured from the work itself."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass

# The weight of the past falls to half after some 70 items, so a figure follows the machine within seconds.
_DECAY = 0.99
_UNKNOWN_NS_PER_TOKEN = 150_000.0


@dataclass(frozen=True, slots=True)
class SchedulerStats:
    """The state of a scheduler at one moment."""

    workers: int  # threads of each work class
    alive_threads: int
    queued_online_items: int
    queued_bulk_items: int
    ns_per_token: Mapping[str, float]  # by model id; models that have not run yet are missing


class CostMeter:
    """A decaying mean of nanoseconds a token for each model: the sum of times over the sum of tokens, not of ratios."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._sums: dict[str, tuple[float, float]] = {}

    def add(self, model_id: str, tokens: int, spent_ns: int) -> None:
        """Takes one measured item into account."""
        with self._lock:
            total_ns, total_tokens = self._sums.get(model_id, (0.0, 0.0))
            self._sums[model_id] = (total_ns * _DECAY + spent_ns, total_tokens * _DECAY + tokens)

    def ns_per_token(self, model_id: str) -> float:
        """Returns the mean, or a cautious guess for a model that has not run yet."""
        return self.all().get(model_id, _UNKNOWN_NS_PER_TOKEN)

    def all(self) -> dict[str, float]:
        """Returns the mean of every model that has run."""
        with self._lock:
            return {model_id: spent / max(tokens, 1.0) for model_id, (spent, tokens) in self._sums.items()}
