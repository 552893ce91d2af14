"""The dense encoder as the request path and the indexer hold it: behind the scheduler, opened by one call."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from encoders.dense import OnnxDenseEncoder
from encoders.models import resolve
from encoders.scheduler import TokenScheduler
from encoders.selfcheck import check_dense
from encoders.sources import ModelSource
from encoders.tokenizing import Tokenization
from encoders.types import Outcome, TextKind, TokenizedText, WorkClass

# Tokenizing costs about 0.25 ms for this many code points; longer input leaves the event loop alone.
_INLINE = 1_000


class ScheduledDenseEncoder:
    """The `AsyncDenseEncoder` of a model: tokenizes, then waits for the scheduler."""

    def __init__(self, encoder: OnnxDenseEncoder, scheduler: TokenScheduler) -> None:
        self._encoder = encoder
        self._scheduler = scheduler
        self.model_id = encoder.model_id
        self.revision = encoder.revision
        self.dim = encoder.dim
        self.max_tokens = encoder.max_tokens

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
        if sum(map(len, texts)) <= _INLINE:
            items = self.tokenize(texts, kind)
        else:
            threads = self._scheduler.bulk_threads if work_class is WorkClass.BULK else None
            items = await asyncio.get_running_loop().run_in_executor(threads, self.tokenize, texts, kind)
        return await self.encode_tokenized(items, work_class, deadline_ns)

    async def encode_tokenized(
        self, items: Sequence[TokenizedText], work_class: WorkClass, deadline_ns: int | None
    ) -> list[Outcome[NDArray[np.float32]]]:
        """Does the same for texts that `tokenize` has cut already."""
        return await self._scheduler.submit(self._encoder.engine, items, work_class, deadline_ns)


def open_dense(source: ModelSource, scheduler: TokenScheduler) -> ScheduledDenseEncoder:
    """Finds and opens a dense encoder, and compares it with its reference vectors on this CPU.

    Raises:
        ModelNotFound: there is no such model.
        ModelUnsupported: it is no bi-encoder, or needs a step that is not built here.
        ModelCheckFailed: it computes something else than its references.
    """
    files = resolve(source)
    encoder = OnnxDenseEncoder.open(files)
    check_dense(encoder, files.folder)
    return ScheduledDenseEncoder(encoder, scheduler)
