"""A running check on what was served: whether the bound is broken, seen over any stretch of time.

A sum of likelihood ratios against an error rate three times the allowed one, never below none at all (CUSUM, Page,
1954). While the bound holds the ratio is a supermartingale, so the expected number of labels until a false alarm is at
least the limit (an e-detector; Shin, Ramdas and Rinaldo, 2022), however often one looks. The evidence tightens by
itself as served answers turn out wrong; this catches what changes faster than its window.
"""

from __future__ import annotations

import math

_TIMES = 3.0
_LIMIT = math.log(300.0)


class Watch:
    """Adds up labels of served answers."""

    def __init__(self) -> None:
        self.level = 0.0  # nats
        self.labels = 0
        self.errors = 0

    def add(self, max_error_rate: float, *, correct: bool) -> bool:
        """Adds a label, or a complaint, of an answer served under a bound; returns whether the bound is broken."""
        self.labels += 1
        self.errors += not correct
        allowed = min(max(max_error_rate, 1e-6), 0.5)
        suspected = min(_TIMES * allowed, 0.5 * (1.0 + allowed))
        ratio = (1.0 - suspected) / (1.0 - allowed) if correct else suspected / allowed
        self.level = max(0.0, self.level + math.log(ratio))
        return self.level >= _LIMIT

    def reset(self) -> None:
        """Starts anew after an alarm."""
        self.level = 0.0
