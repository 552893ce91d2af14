"""One import: batches of documents as they come, a couple of them being encoded while the next is received.

A document that cannot be indexed is counted and named, and the rest go on. Nothing is read from the caller while the
batches in flight are at their bound, so memory does not depend on the size of the import.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass

from headrace.v1 import index_pb2
from indexers.documents import check_document
from indexers.errors import InvalidInput
from indexers.index import Index
from indexers.reports import DocumentOutcome, DocumentStatus, UpsertReport
from indexers.types import Document, FieldType
from retrieval.errors import InvalidRequest
from retrieval.server.convert.documents import UpsertTally, document_from_pb

_IN_FLIGHT = 2


@dataclass(frozen=True, slots=True)
class _Batch:
    """Documents that are being indexed."""

    ids: frozenset[str]
    task: asyncio.Task[UpsertReport]


class Import:
    """Takes the messages of one import into one collection."""

    def __init__(
        self,
        collection: str,
        opened: Callable[[], Awaitable[Index]],
        upsert: Callable[[Sequence[Document]], Awaitable[UpsertReport]],
    ) -> None:
        """`opened` gives the collection as it is, which may be of another model from one call to the next."""
        self._collection = collection
        self._opened = opened
        self._upsert = upsert
        self._tally = UpsertTally()
        self._window: deque[_Batch] = deque()

    async def run(self, messages: AsyncIterator[index_pb2.ImportDocumentsRequest]) -> index_pb2.UpsertResult:
        """Indexes everything that comes and says what became of it.

        Raises:
            InvalidRequest: a message names another collection than the first one.
            IndexUnavailable, SchedulerStopped: the work cannot go on; what was written stays.
        """
        try:
            async for message in messages:
                await self._take(message)
            while self._window:
                await self._settle_oldest()
        finally:
            for batch in self._window:
                batch.task.cancel()
            await asyncio.gather(*(batch.task for batch in self._window), return_exceptions=True)
        return self._tally.result((await self._opened()).epoch)

    async def _take(self, message: index_pb2.ImportDocumentsRequest) -> None:
        if message.collection not in ("", self._collection):
            bound = f"empty or {self._collection}"
            raise InvalidRequest("collection", bound, f"collection must be {bound} after the first message")
        fields = (await self._opened()).definition.fields
        documents, refused = await asyncio.to_thread(_checked, message.documents, fields)
        self._tally.add(refused)
        if not documents:
            return
        ids = frozenset(document.document_id for document in documents)
        while len(self._window) >= _IN_FLIGHT or any(ids & batch.ids for batch in self._window):
            await self._settle_oldest()
        self._window.append(_Batch(ids, asyncio.ensure_future(self._upsert(documents))))

    async def _settle_oldest(self) -> None:
        report = await self._window[0].task
        self._window.popleft()
        self._tally.add(report.outcomes)


def _checked(
    messages: Sequence[index_pb2.Document], fields: Mapping[str, FieldType]
) -> tuple[list[Document], list[DocumentOutcome]]:
    """Tells the documents that can be indexed from those that cannot."""
    accepted: dict[str, Document] = {}
    refused: list[DocumentOutcome] = []
    for position, message in enumerate(messages):
        try:
            if message.id in accepted:
                raise InvalidRequest("id", "unique within one message", "another document of this message has this id")
            accepted[message.id] = check_document(document_from_pb(message, f"documents[{position}]"), fields)
        except (InvalidRequest, InvalidInput) as error:
            refused.append(DocumentOutcome(message.id, DocumentStatus.FAILED, reason=str(error)))
    return list(accepted.values()), refused
