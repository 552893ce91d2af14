"""What the answer cache says of a request: whether an earlier answer served, and the value of each gate."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Reuse(enum.Enum):
    """Whether an answer that was made before served."""

    NONE = "none"
    EQUAL = "equal"  # the same question, after normalisation
    SIMILAR = "similar"  # a question in other words


@dataclass(frozen=True, slots=True)
class EvidenceReport:
    """Whether retrieval still finds what an answer was made from."""

    cited: int = 0  # passages that the answer cites
    found: int = 0  # of them, those that are found again with the same content
    weakest_rank: int = 0  # from 1, of the worst placed of those; 0 when none is found
    newcomers: int = 0  # passages above that place that the answer was not made with
    trusted: bool = False  # not checked now, but a moment ago

    @property
    def holds(self) -> bool:
        """Whether the answer may be used as far as the evidence goes."""
        return self.trusted or (0 < self.cited == self.found and not self.newcomers)


@dataclass(frozen=True, slots=True)
class RiskReport:
    """What is known of how well an answer serves a question in other words."""

    error_estimate: float  # of this answer for this question, in [0, 1]
    error_bound: float  # upper confidence bound of the share of wrong ones among those served; 1 without evidence
    max_error_rate: float  # what the settings accept
    labels: int  # comparisons that were learned from


@dataclass(frozen=True, slots=True)
class ReuseReport:
    """What the answer cache did, with the value of each gate; `reason` says why nothing served, empty when one did."""

    reuse: Reuse = Reuse.NONE
    reason: str = ""
    key: str = ""  # of the answer that served, or was stored
    tier: str = ""  # where it was: `memory`, `shared`
    age_ms: int = 0
    similarity: float = 0.0  # cosine of the two questions; 1 for an equal one
    evidence: EvidenceReport | None = None  # of the answer that served or came nearest to it
    risk: RiskReport | None = None
    stored: bool = False  # whether the new answer was kept
    shadowed: bool = False  # whether a new answer is made besides, to compare


NO_REUSE = ReuseReport()
