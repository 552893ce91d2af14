"""A collection in this process as a Target: the data folder, or a Qdrant server, is opened by whoever runs the job."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from encoders.types import WorkClass
from indexers.documents import document_fingerprint
from indexers.index import Index
from indexers.ingest import Indexer
from indexers.jobs.target import Looked
from indexers.preparation import Encoded
from indexers.reports import UpsertReport
from indexers.types import CollectionDefinition, Document, FieldType


class IndexTarget:
    """Writes through an Indexer, which chunks and encodes here."""

    def __init__(self, index: Index, indexer: Indexer, *, builds: bool) -> None:
        """`builds` tells whether a generation is made at the end, since no server does that in its own time."""
        self._index = index
        self._indexer = indexer
        self._builds = builds

    @property
    def definition(self) -> CollectionDefinition:
        """What the collection promises."""
        return self._index.definition

    @property
    def fields(self) -> Mapping[str, FieldType]:
        """The declared metadata fields."""
        return self._index.definition.fields

    def fingerprint(self, document: Document) -> str:
        """Returns the fingerprint that the document would be stored with."""
        return document_fingerprint(document, self._indexer.shaping)

    async def look(self, document_ids: Sequence[str]) -> Looked:
        """Returns what is stored; the sequence is read first, so nothing reported is older than it says."""
        epoch = await self._index.current_epoch()
        return Looked(epoch.write_sequence, await self._index.look_up(document_ids) if document_ids else {})

    async def write(self, documents: Sequence[Document], since: int) -> UpsertReport:
        """Chunks, encodes and writes what nobody has changed since."""
        return await self._indexer.upsert(documents, WorkClass.BULK, since)

    async def write_encoded(self, encoded: Sequence[Encoded], since: int) -> UpsertReport:
        """Writes what was chunked and encoded elsewhere; one outcome a document, in order."""
        return await self._indexer.write(encoded, since)

    @property
    def shaping(self) -> str:
        """What shapes a stored fingerprint besides the document."""
        return self._indexer.shaping

    async def delete(self, document_ids: Sequence[str], since: int) -> int:
        """Deletes what nobody has written since; returns how many were there."""
        return await self._index.delete(document_ids, since)

    async def owned(self, owner: str, after: str, limit: int) -> list[tuple[str, str]]:
        """Returns (id, source URI) of the owner's documents with greater ids, by id."""
        return await self._index.owned(owner, after, limit)

    async def chunk_ids(self, document_ids: Sequence[str]) -> list[str]:
        """Returns the ids of the documents' chunks."""
        return [chunk for one in document_ids for chunk in await self._index.chunk_ids(one)]

    async def present(self, chunk_ids: Sequence[str]) -> list[str]:
        """Returns which of the chunks can still be fetched."""
        return [passage.chunk_id for passage in await self._index.fetch(chunk_ids)]

    async def finish(self) -> None:
        """Folds what was written into a generation, when it is much."""
        if self._builds:
            await self._index.build_if_stale()
