"""Documents to chunks, vectors and terms, as one model has them: what an Index stores of each.

All computing happens in worker threads; the event loop only waits. A document that cannot be encoded fails by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import Executor
from typing import TypeVar

from encoders.errors import SchedulerFull
from encoders.sparse import AsyncSparseEncoder
from encoders.types import AsyncDenseEncoder, EncodedPassage, Outcome, TermCounts, WorkClass
from indexers.chunking import Chunker
from indexers.documents import document_fingerprint
from indexers.preparation import CheckedDocument, Encoded, PreparedDocument, assemble, count_words, prepare
from indexers.types import CollectionDefinition, Document

T = TypeVar("T")

_ENCODE_TEXTS = 64  # of one call to the encoder
_PATIENCE_S = 600.0  # for an encoder that is full with others' work


class DocumentEncoder:
    """Encodes documents for the collections of one definition."""

    def __init__(
        self,
        definition: CollectionDefinition,
        encoder: AsyncDenseEncoder,
        chunker: Chunker,
        threads: Executor | None = None,
        sparse: AsyncSparseEncoder | None = None,
        at_once: int = 0,
    ) -> None:
        """`threads` computes what is not the encoders'; None takes the event loop's own.

        `sparse` weighs terms for a collection that was made for it; None counts words for BM25. `at_once` documents are
        cut in one go, 0 for all of a call: with few, others' documents come between, and a call alone takes longer.
        """
        self._encoder = encoder
        self._chunker = chunker
        self._threads = threads
        self._sparse = sparse
        self._at_once = at_once
        self._keeps_codes = definition.code_bytes > 0
        revisions = "+".join(filter(None, (encoder.revision, definition.sparse_revision)))
        self.shaping = f"{chunker.fingerprint}/{revisions}/{definition.code_bytes}"
        """What shapes a stored fingerprint besides the document: how it is cut, the models."""

    def checked(self, document: Document, warnings: tuple[str, ...] = ()) -> CheckedDocument:
        """Returns a valid document with its fingerprint."""
        return CheckedDocument(document, document_fingerprint(document, self.shaping), warnings)

    async def encode(self, documents: Sequence[CheckedDocument], work_class: WorkClass) -> list[Encoded]:
        """Chunks and encodes documents, in order.

        Raises:
            SchedulerFull: the encoder is full and the call is ONLINE, or is so for longer than is bearable.
            SchedulerStopped: the encoder takes nothing.
        """
        prepared: list[PreparedDocument] = []
        at_once = self._at_once or max(1, len(documents))
        for start in range(0, len(documents), at_once):
            prepared += await self._in_thread(self._prepare, documents[start : start + at_once])
        texts = [text for document in prepared for text in document.texts]
        outcomes = await _encode_all(self._encoder.encode_passages, texts, work_class)
        if self._sparse is None:
            terms = await self._in_thread(count_words, texts)
        else:
            terms = await _encode_all(self._sparse.encode_passages, texts, work_class)
        return await self._in_thread(self._assemble, prepared, outcomes, terms)

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def _prepare(self, documents: Sequence[CheckedDocument]) -> list[PreparedDocument]:
        return [prepare(checked, self._chunker) for checked in documents]

    def _assemble(
        self,
        prepared: Sequence[PreparedDocument],
        outcomes: list[Outcome[EncodedPassage]],
        terms: list[Outcome[TermCounts]],
    ) -> list[Encoded]:
        position = 0
        encoded: list[Encoded] = []
        for document in prepared:
            span = slice(position, position + len(document.texts))
            encoded.append(assemble(document, outcomes[span], terms[span], keeps_codes=self._keeps_codes))
            position = span.stop
        return encoded


async def _encode_all(
    encode: Callable[[Sequence[str], WorkClass, None], Awaitable[list[Outcome[T]]]],
    texts: Sequence[str],
    work_class: WorkClass,
) -> list[Outcome[T]]:
    outcomes: list[Outcome[T]] = []
    for start in range(0, len(texts), _ENCODE_TEXTS):
        outcomes += await _encode_some(encode, texts[start : start + _ENCODE_TEXTS], work_class)
    return outcomes


async def _encode_some(
    encode: Callable[[Sequence[str], WorkClass, None], Awaitable[list[Outcome[T]]]],
    texts: Sequence[str],
    work_class: WorkClass,
) -> list[Outcome[T]]:
    """Encodes; bulk work waits while the encoder is full, work that somebody waits for is refused at once."""
    give_up = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return await encode(texts, work_class, None)
        except SchedulerFull as full:
            if work_class is WorkClass.ONLINE or time.monotonic() > give_up:
                raise
            await asyncio.sleep(min(max(full.retry_after_ms, 1.0), 5_000.0) / 1000)
