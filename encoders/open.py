"""The dense encoder as the request path and the indexer hold it: behind the scheduler, opened by one call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from encoders.calibration import Calibration
from encoders.curve import sample_of
from encoders.dense import DenseEngine, OnnxDenseEncoder
from encoders.late.engines import PassageEngine, QueryEngine
from encoders.measured import Measurements
from encoders.scheduler import TokenScheduler
from encoders.selfcheck import TextCheck
from encoders.sources import ModelSource
from encoders.tokenizing import Tokenization
from encoders.types import EncodedPassage, EncodedQuery, Outcome, TextKind, TokenCodec, TokenizedText, WorkClass
from encoders.variants import Choice, open_checked
from encoders.vector_engine import VectorEngine

# Tokenizing costs about 0.25 ms for this many code points; longer input leaves the event loop alone.
_INLINE = 1_000


class ScheduledDenseEncoder:
    """The `AsyncDenseEncoder` of a model: tokenizes, then waits for the scheduler."""

    def __init__(self, encoder: OnnxDenseEncoder, scheduler: TokenScheduler) -> None:
        projection = encoder.projection
        self._encoder = encoder
        self._scheduler = scheduler
        self._queries = QueryEngine(encoder.engine, projection)
        self._passages = PassageEngine(encoder.engine, projection)
        self.codec: TokenCodec | None = None if projection is None else projection.codec
        self.model_id = encoder.model_id
        self.revision = encoder.revision
        self.dim = encoder.dim
        self.max_tokens = encoder.max_tokens
        self.choice: Choice | None = None
        """Which file was opened and what its check said; None when it was opened without."""
        self.calibration: Calibration | None = None
        """What a token costs; None for a model that costs nearly nothing."""

    @property
    def engine(self) -> VectorEngine:
        """What makes vectors, for whoever has texts that are tokenized already."""
        return self._encoder.engine

    @property
    def tokenization(self) -> Tokenization:
        """The model's `TokenCounter`."""
        return self._encoder.tokenization

    def tokenize(self, texts: Sequence[str], kind: TextKind) -> list[TokenizedText]:
        """Adds the prompt of the kind, cuts at `max_tokens`."""
        return self._encoder.tokenize(texts, kind)

    async def encode(
        self,
        texts: Sequence[str],
        kind: TextKind,
        work_class: WorkClass,
        deadline_ns: int | None,
    ) -> list[Outcome[NDArray[np.float32]]]:
        """Returns one outcome a text, in order; a value is float32 [dim], unit length and finite.

        `deadline_ns` is on the clock of `time.monotonic_ns`. Cancelling the call drops what has not started.

        Raises:
            SchedulerFull, SchedulerStopped: nothing of the call was accepted.
        """
        items = await self._tokenized(texts, kind, work_class)
        return await self.encode_tokenized(items, work_class, deadline_ns)

    async def encode_tokenized(
        self, items: Sequence[TokenizedText], work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[NDArray[np.float32]]]:
        """Does the same for texts that `tokenize` has cut already."""
        return await self._scheduler.submit(self._encoder.engine, items, work_class, deadline_ns)

    async def encode_query(self, text: str, deadline_ns: int | None) -> Outcome[EncodedQuery]:
        """Encodes a question that somebody waits for, with its token vectors, in one run.

        Raises:
            SchedulerFull, SchedulerStopped: it was not accepted.
        """
        items = await self._tokenized([text], TextKind.QUERY, WorkClass.ONLINE)
        [outcome] = await self._scheduler.submit(self._queries, items, WorkClass.ONLINE, deadline_ns)
        return outcome

    async def encode_passages(
        self, texts: Sequence[str], work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[EncodedPassage]]:
        """Encodes passages with the codes of their token vectors, in one run each; otherwise as `encode`.

        Raises:
            SchedulerFull, SchedulerStopped: nothing of the call was accepted.
        """
        items = await self._tokenized(texts, TextKind.PASSAGE, work_class)
        return await self._scheduler.submit(self._passages, items, work_class, deadline_ns)

    async def _tokenized(self, texts: Sequence[str], kind: TextKind, work_class: WorkClass) -> list[TokenizedText]:
        if sum(map(len, texts)) <= _INLINE:
            return self.tokenize(texts, kind)
        threads = self._scheduler.bulk_threads if work_class is WorkClass.BULK else None
        return await asyncio.get_running_loop().run_in_executor(threads, self.tokenize, texts, kind)


def open_dense(
    source: ModelSource, scheduler: TokenScheduler, memory: Measurements | None = None
) -> ScheduledDenseEncoder:
    """Finds and opens a dense encoder, and compares it with its reference vectors on this CPU.

    `memory` holds what earlier starts have measured; without one everything is measured anew.

    Raises:
        ModelNotFound: there is no such model.
        ModelUnsupported: it is no bi-encoder, or needs a step that is not built here.
        ModelCheckFailed: it computes something else than its references.
    """
    memory = memory or Measurements()
    chosen = open_checked(source, TextCheck(), memory)
    encoder, files = chosen.encoder, chosen.files
    opened = ScheduledDenseEncoder(encoder, scheduler)
    opened.choice = chosen.choice
    if isinstance(encoder.engine, DenseEngine):
        sample = sample_of(encoder.tokenization, paired=False)
        opened.calibration = Calibration(encoder.engine, sample, files, scheduler, memory)
    return opened
