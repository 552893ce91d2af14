"""The way of documents into an Index: check, compare fingerprints, chunk, encode, write.

Documents go in small batches, a few of which are being encoded at any time: the encoder's queue never runs dry, memory
does not depend on how many documents there are, and they are written in the order in which they came. All computing
happens in worker threads; the event loop only waits. A document that cannot be indexed fails by itself.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Executor
from typing import TypeVar

from encoders.sparse import AsyncSparseEncoder
from encoders.types import AsyncDenseEncoder, WorkClass
from indexers.chunking import Chunker
from indexers.document_encoding import DocumentEncoder
from indexers.documents import check_document, check_documents
from indexers.errors import InvalidInput
from indexers.index import Index
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SkippedFile, SourceItem
from indexers.preparation import CheckedDocument, Encoded, superseded
from indexers.pruning import SeenSources, prune
from indexers.reports import DocumentOutcome, DocumentStatus, IndexReport, Progress, Tally, UpsertReport
from indexers.types import Document

T = TypeVar("T")

_BATCH_DOCUMENTS = 64
_BATCH_CHARACTERS = 64_000  # about 80 chunks
_BATCHES_IN_FLIGHT = 4


class Indexer:
    """Writes documents into one collection. Calls may overlap; two writers of one document are ordered by the Index."""

    def __init__(
        self,
        index: Index,
        encoder: AsyncDenseEncoder,
        chunker: Chunker,
        threads: Executor | None = None,
        sparse: AsyncSparseEncoder | None = None,
    ) -> None:
        """`threads` computes what is not the encoders'; None takes the event loop's own.

        `sparse` weighs terms for a collection that was made for it; None counts words for BM25.
        """
        self._index = index
        self._encoding = DocumentEncoder(index.definition, encoder, chunker, threads, sparse)
        self._threads = threads

    @property
    def shaping(self) -> str:
        """What shapes a stored fingerprint besides the document: how it is cut, the models."""
        return self._encoding.shaping

    async def upsert(
        self, documents: Sequence[Document], work_class: WorkClass, since: int | None = None
    ) -> UpsertReport:
        """Writes the documents that have changed and says what became of each.

        With `since`, those that anybody wrote or deleted after that write sequence are left alone.

        Raises:
            InvalidDocument, TypeMismatch: names the document and the bound; nothing was written.
            SchedulerFull: the encoder is full and the call is ONLINE; nothing was written.
            IndexUnavailable: the store cannot be reached.
        """
        checked = await self._in_thread(self._check_all, documents)
        changed, unchanged = await self._compare(checked)
        encoded = await self._write(await self._encoding.encode(changed, work_class), since)
        became = {outcome.document_id: outcome for outcome in [*unchanged, *(one.outcome for one in encoded)]}
        outcomes = tuple(became[document.document_id] for document in documents)
        return UpsertReport(outcomes, self._index.epoch)

    async def encode(self, documents: Sequence[Document], work_class: WorkClass) -> list[Encoded]:
        """Chunks and encodes documents, which are checked already, without asking or writing anything; in order."""
        return await self._encoding.encode([self._encoding.checked(document) for document in documents], work_class)

    async def write(self, encoded: Sequence[Encoded], since: int | None = None) -> UpsertReport:
        """Writes what was encoded, here or elsewhere; with `since` what nobody has changed since.

        Raises:
            InvalidVector: names the documents; nothing was written.
            IndexUnavailable: the store cannot be reached.
        """
        written = await self._write(list(encoded), since)
        return UpsertReport(tuple(one.outcome for one in written), self._index.epoch)

    async def run(
        self, items: Iterable[SourceItem], roots: Sequence[str] = (), progress: Progress | None = None
    ) -> IndexReport:
        """Indexes a stream, which is read in a worker thread, and reports what became of everything in it.

        After a whole run, documents whose source URI is under one of the `roots` and that did not come by are removed.

        Raises:
            SchedulerFull, SchedulerStopped: the encoder does not take the work.
            IndexUnavailable: the store cannot be reached.
        """
        tally, seen = Tally(), SeenSources()
        source = iter(items)
        window: deque[asyncio.Task[list[Encoded]]] = deque()
        try:
            while (batch := await self._in_thread(self._next_batch, source, tally, seen)) is not None:
                changed, unchanged = await self._compare(batch)
                _report(unchanged, tally, progress)
                window.append(asyncio.create_task(self._encoding.encode(changed, WorkClass.BULK)))
                if len(window) == _BATCHES_IN_FLIGHT:
                    await self._write_next(window, tally, progress)
            while window:
                await self._write_next(window, tally, progress)
        finally:
            for task in window:
                task.cancel()
            await asyncio.gather(*window, return_exceptions=True)
        await prune(self._index, roots, seen, tally)
        _report([], tally, progress)
        return tally.report(self._index.epoch)

    async def _in_thread(self, work: Callable[..., T], *arguments: object) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)

    def _check_all(self, documents: Sequence[Document]) -> list[CheckedDocument]:
        return [self._encoding.checked(one) for one in check_documents(documents, self._index.definition.fields)]

    def _next_batch(
        self, source: Iterator[SourceItem], tally: Tally, seen: SeenSources
    ) -> list[CheckedDocument] | None:
        """Reads up to a batch; an empty one holds failures only, None is the end."""
        batch: list[CheckedDocument] = []
        characters = 0
        for read, item in enumerate(source, 1):
            if isinstance(item, ParsedDocument):
                batch += self._checked(item, tally, seen)
                characters += len(item.document.text)
            else:
                _count(item, tally, seen)
            if read == _BATCH_DOCUMENTS or characters >= _BATCH_CHARACTERS:
                return batch
        return batch or None

    def _checked(self, item: ParsedDocument, tally: Tally, seen: SeenSources) -> list[CheckedDocument]:
        name = item.document.document_id
        if not seen.add(name):
            place = item.document.source_uri or "this document"
            tally.fail(name, f"{place}: a document with the same id came before it in this run; rename one of them")
            return []
        try:
            document = check_document(item.document, self._index.definition.fields)
        except InvalidInput as error:
            tally.fail(name, str(error))
            return []
        return [self._encoding.checked(document, item.warnings)]

    async def _compare(self, batch: list[CheckedDocument]) -> tuple[list[CheckedDocument], list[DocumentOutcome]]:
        """Tells the documents that have changed from those that have not."""
        stored = await self._index.look_up([checked.document.document_id for checked in batch]) if batch else {}
        changed: list[CheckedDocument] = []
        unchanged: list[DocumentOutcome] = []
        for checked in batch:
            found = stored.get(checked.document.document_id)
            if found is not None and found.fingerprint == checked.fingerprint:
                unchanged.append(_unchanged(checked))
            else:
                changed.append(checked)
        return changed, unchanged

    async def _write_next(
        self, window: deque[asyncio.Task[list[Encoded]]], tally: Tally, progress: Progress | None
    ) -> None:
        encoded = await window[0]
        window.popleft()
        encoded = await self._write(encoded)
        _report([one.outcome for one in encoded], tally, progress)

    async def _write(self, encoded: list[Encoded], since: int | None = None) -> list[Encoded]:
        """Writes what can be written, and returns all with what has become of it."""
        documents = [one.document for one in encoded if one.document is not None]
        if not documents:
            return encoded
        result = await self._index.upsert(documents, since)
        return [superseded(one) if one.outcome.document_id in result.superseded else one for one in encoded]


def _unchanged(checked: CheckedDocument) -> DocumentOutcome:
    name = checked.document.document_id
    fingerprint, warnings = checked.fingerprint, checked.warnings
    return DocumentOutcome(name, DocumentStatus.UNCHANGED, fingerprint=fingerprint, warnings=warnings)


def _count(item: SourceItem, tally: Tally, seen: SeenSources) -> None:
    if isinstance(item, SkippedFile):
        tally.skip(item.path, item.reason)
    elif isinstance(item, ParseFailure):
        tally.fail(item.path, item.reason)
        seen.keep(item.source_uri)


def _report(outcomes: list[DocumentOutcome], tally: Tally, progress: Progress | None) -> None:
    for outcome in outcomes:
        tally.add(outcome)
    if progress is not None:
        progress.advanced(tally.counts)
