"""What is known of a pool while it is being scored, and which pairs come next. Pure: no clock, no model.

Candidates are taken best first. Before each piece the plan is made anew: while the result is not covered yet, all pairs
that it still needs must fit into what is left, or nothing more is spent; after that, a piece is as long as what fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rerank.calibrate import Weights
from rerank.stopping import StopRule
from rerank.types import Stop


@dataclass(frozen=True, slots=True)
class Aim:
    """What the scores are for."""

    top_k: int  # the size of the result; as many of the first must be scored
    weights: Weights  # of the score before and the cross-encoder's probability; the latter above 0
    rule: StopRule


class Progress:
    """The state of one pool."""

    def __init__(self, base: NDArray[np.float64], known: NDArray[np.float64], tokens: Sequence[int], aim: Aim) -> None:
        """`base` [n] falls; `known` [n] holds logits from earlier, else NaN; `tokens` [n] is what each pair costs."""
        self.logits = known.copy()
        self._base = base
        self._tokens = tokens
        self._aim = aim
        self._expected: float | None = None  # None until it is asked for again

    @property
    def covered(self) -> bool:
        """Whether the first `top_k` are scored: the least that makes a result of scored ones alone."""
        return not np.isnan(self.logits[: self._aim.top_k]).any()

    @property
    def settled(self) -> bool:
        """Whether the rule holds; not with all pairs scored."""
        return bool(np.isnan(self.logits).any()) and self._gain() <= self._aim.rule.tolerance

    @property
    def stop(self) -> Stop:
        """Why it ended, once no piece comes next."""
        if not np.isnan(self.logits).any():
            return "all"
        return "settled" if self.settled else "deadline"

    def next_piece(self, size: int, affordable_tokens: float) -> list[int]:
        """Returns the positions of the next pairs, at most `size`; none to end."""
        if self.settled:
            return []
        waiting = np.flatnonzero(np.isnan(self.logits)).tolist()
        if sum(self._tokens[place] for place in waiting if place < self._aim.top_k) > affordable_tokens:
            return []
        piece: list[int] = []
        for place in waiting[:size]:
            affordable_tokens -= self._tokens[place]
            if affordable_tokens < 0:
                break
            piece.append(place)
        return piece

    def note(self, piece: Sequence[int], logits: NDArray[np.float64]) -> None:
        """Takes the logits of a piece into account."""
        self.logits[list(piece)] = logits
        self._expected = None

    def _gain(self) -> float:
        if self._expected is None:
            aim = self._aim
            self._expected = aim.rule.expected_gain(self._base, self.logits, aim.weights, aim.top_k)
        return self._expected
