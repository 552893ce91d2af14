"""The learned sparse encoder as the request path and the indexer hold it: behind the scheduler, opened by one call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from encoders.learned import stored_weights
from encoders.models import resolve
from encoders.scheduler import TokenScheduler
from encoders.sources import ModelSource
from encoders.splade import SpladeEncoder
from encoders.types import Outcome, SparseVector, TermCounts, TextKind, TokenizedText, WorkClass


class ScheduledSparseEncoder:
    """The `AsyncSparseEncoder` of a model: tokenizes, then waits for the scheduler."""

    def __init__(self, encoder: SpladeEncoder, scheduler: TokenScheduler) -> None:
        self._encoder = encoder
        self._scheduler = scheduler
        self.model_id = encoder.model_id
        self.revision = encoder.revision
        self.max_tokens = encoder.max_tokens

    async def encode_query(self, text: str, deadline_ns: int | None) -> Outcome[SparseVector]:
        """Weighs the words that a question calls up, ahead of all bulk work.

        Raises:
            SchedulerFull, SchedulerStopped: it was not accepted.
        """
        items = await self._tokenized([text], TextKind.QUERY)
        [outcome] = await self._scheduler.submit(self._encoder.engine, items, WorkClass.ONLINE, deadline_ns)
        return outcome

    async def encode_passages(
        self, texts: Sequence[str], work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[TermCounts]]:
        """Weighs the words of passages, as they are stored; one outcome a text, in order.

        Raises:
            SchedulerFull, SchedulerStopped: nothing of the call was accepted.
        """
        items = await self._tokenized(texts, TextKind.PASSAGE)
        outcomes = await self._scheduler.submit(self._encoder.engine, items, work_class, deadline_ns)
        return [outcome.map(stored_weights) for outcome in outcomes]

    async def _tokenized(self, texts: Sequence[str], kind: TextKind) -> list[TokenizedText]:
        # Beside a run of this model a change of thread is nothing.
        return await asyncio.to_thread(self._encoder.tokenize, texts, kind)


def open_sparse(source: ModelSource, scheduler: TokenScheduler) -> ScheduledSparseEncoder:
    """Finds and opens a learned sparse encoder.

    Raises:
        ExtraMissing: fastembed is not installed.
        ModelNotFound: there is no such model.
        ModelUnsupported: it is no SPLADE model.
    """
    return ScheduledSparseEncoder(SpladeEncoder.open(resolve(source)), scheduler)
