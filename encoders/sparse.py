"""What a learned sparse encoder is. BM25 needs none: its weights come from counts and the collection's statistics."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from encoders.types import Outcome, SparseVector, TermCounts, WorkClass


class SparseEncoder(Protocol):
    """Texts to sparse vectors over the model's vocabulary, synchronously; a text's vector is its own."""

    @property
    def model_id(self) -> str:
        """The model's id or folder name."""
        ...

    @property
    def revision(self) -> str:
        """A hash of the files that shape a vector."""
        ...

    @property
    def max_tokens(self) -> int:
        """Tokens of a text at most, special ones included."""
        ...

    def encode_queries(self, texts: Sequence[str]) -> list[SparseVector]:
        """Returns a vector a text, values above 0; texts are cut at `max_tokens`."""
        ...

    def encode_passages(self, texts: Sequence[str]) -> list[SparseVector]:
        """Returns a vector a text, values above 0; texts are cut at `max_tokens`."""
        ...


class AsyncSparseEncoder(Protocol):
    """The scheduled view of a sparse encoder."""

    @property
    def model_id(self) -> str:
        """The model's id or folder name."""
        ...

    @property
    def revision(self) -> str:
        """A hash of the files that shape a weight."""
        ...

    async def encode_query(self, text: str, deadline_ns: int | None) -> Outcome[SparseVector]:
        """Weighs the words that a question calls up, ahead of all bulk work.

        Raises:
            SchedulerFull, SchedulerStopped: it was not accepted.
        """
        ...

    async def encode_passages(
        self, texts: Sequence[str], work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[TermCounts]]:
        """Weighs the words of passages, as they are stored; one outcome a text, in order.

        Raises:
            SchedulerFull, SchedulerStopped: nothing of the call was accepted.
        """
        ...
