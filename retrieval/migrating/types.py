"""What is asked of a migration, and what is told of it."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

MIN_RECALL = 0.95
MAX_NDCG_LOSS = 0.02


class Step(enum.Enum):
    """What a migration does."""

    ENCODING = "encoding"
    BUILDING = "building"
    CHECKING = "checking"
    CHANGING_OVER = "changing_over"
    DONE = "done"
    FAILED = "failed"

    @property
    def ended(self) -> bool:
        """Whether nothing more happens."""
        return self in (Step.DONE, Step.FAILED)


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question and how relevant documents are to it, by id; those that are not named are not."""

    query: str
    relevance: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class Bounds:
    """What the collection must be able to do before it changes over."""

    min_recall: float = MIN_RECALL
    """The least share of the exact ten best that searches find, over a sample."""
    max_ndcg_loss: float = MAX_NDCG_LOSS
    """The most that nDCG@10 over the labelled questions may fall."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a caller asks for."""

    model: str = ""  # how its files are named; empty for the configured model
    back: bool = False  # to the model that served before, whatever its files are named
    token_vectors: bool | None = None  # None keeps what the collection does, where the model has them
    bounds: Bounds = Bounds()
    questions: tuple[LabelledQuestion, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckReport:
    """What was measured of what was built."""

    recall: float
    sampled: int  # searches that the recall is the mean of
    ndcg_before: float | None = None  # None without questions, or when the collection could not serve
    ndcg_after: float | None = None


@dataclass(frozen=True, slots=True)
class MigrationState:
    """How far a migration is."""

    model: str  # with its revision; as it was asked for until the model is open
    step: Step
    documents: int = 0
    documents_done: int = 0
    encoded: int = 0
    duration_s: float = 0.0
    check: CheckReport | None = None
    error: Exception | None = None
