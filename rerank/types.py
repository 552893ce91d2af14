"""What reranks: a query and passages in, one score a passage out, and what that cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from encoders.types import TokenizedText

Stop: TypeAlias = Literal["all", "settled", "deadline", "gate", "unavailable"]
"""Why scoring ended: nothing was left, nothing could change, no time was left, nothing was in doubt, it failed."""


@dataclass(frozen=True, slots=True)
class PairScores:
    """The logits of all passages of one query, in their order, and what they cost."""

    logits: NDArray[np.float64]  # [n], finite; higher is better
    token_count: int  # over all pairs, as the model saw them
    truncated_count: int  # pairs that were cut
    queue_ns: int  # until the first pair was begun
    compute_ns: int  # summed over the pairs, so it can exceed the time that passed

    @property
    def pair_count(self) -> int:
        """Pairs that were scored: all of them."""
        return len(self.logits)


@dataclass(frozen=True, slots=True)
class Load:
    """What a token costs now, as far as is known, and who else waits."""

    workers: int  # pairs that are computed at once
    ns_per_token: float  # of one worker
    queued_pairs: int  # of all callers, not begun


class Reranker(Protocol):
    """Scores passages synchronously (tools and tests); a passage's score never depends on its neighbours."""

    @property
    def model_id(self) -> str:
        """The model as the settings name it."""
        ...

    @property
    def revision(self) -> str:
        """A hash of the files that shape a score."""
        ...

    def score(self, query: str, passages: Sequence[str]) -> NDArray[np.float32]:
        """Returns float32 [n], logits; higher is better. Pairs are cut at the model's limit."""
        ...


class AsyncReranker(Protocol):
    """The scheduled view of a reranker: what the request path holds."""

    @property
    def model_id(self) -> str:
        """The model as the settings name it."""
        ...

    @property
    def revision(self) -> str:
        """A hash of the files that shape a score."""
        ...

    async def score(self, query: str, passages: Sequence[str], deadline_ns: int | None) -> PairScores:
        """Scores all passages or none. `deadline_ns` is on the clock of `time.monotonic_ns`.

        Raises:
            RerankIncomplete: not every pair was scored: the deadline, a full queue, a failing pair.
        """
        ...

    async def tokenize(self, query: str, passages: Sequence[str]) -> list[TokenizedText]:
        """Makes the pairs as the model takes them, cut at its limit."""
        ...

    async def score_pairs(self, pairs: Sequence[TokenizedText], deadline_ns: int | None) -> PairScores:
        """Does what `score` does for pairs that `tokenize` has made."""
        ...

    def load(self) -> Load:
        """Says what scoring costs at the moment."""
        ...
