"""The Target protocol: the collection that a job writes to, in this process or behind a server.

Writes are conditional: `since` is the write sequence that was current before the source was read. A document that was
written or deleted by anybody after that is not touched and reported as SUPERSEDED, so a worker that slept, or a second
one, can never put an older state in the place of a newer one, and a deletion is never undone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from indexers.reports import UpsertReport
from indexers.types import Document, FieldType, StoredDocument


@dataclass(frozen=True, slots=True)
class Looked:
    """What the collection holds of some documents, and the write sequence at which that was so."""

    write_sequence: int
    documents: Mapping[str, StoredDocument]


class Target(Protocol):
    """One collection, as jobs use it.

    Raises everywhere: TargetUnavailable, which may pass, and IndexerError, which will not.
    """

    @property
    def fields(self) -> Mapping[str, FieldType]:
        """The declared metadata fields, to which documents must be coerced before they are written."""
        ...

    def fingerprint(self, document: Document) -> str:
        """Returns the fingerprint that the document would be stored with; computed here, without asking."""
        ...

    async def look(self, document_ids: Sequence[str]) -> Looked:
        """Returns what is stored under the ids, at most 1,000; without ids the write sequence alone."""
        ...

    async def write(self, documents: Sequence[Document], since: int) -> UpsertReport:
        """Chunks, encodes and writes the documents that nobody has changed since; one outcome a document, in order."""
        ...

    async def delete(self, document_ids: Sequence[str], since: int) -> int:
        """Deletes those that nobody has written since; returns how many were there."""
        ...

    async def owned(self, owner: str, after: str, limit: int) -> list[tuple[str, str]]:
        """Returns (id, source URI) of the documents that the owner wrote, by id."""
        ...

    async def chunk_ids(self, document_ids: Sequence[str]) -> list[str]:
        """Returns the ids of the chunks of at most 100 documents."""
        ...

    async def present(self, chunk_ids: Sequence[str]) -> list[str]:
        """Returns which of the chunks can still be fetched."""
        ...

    async def finish(self) -> None:
        """Does what follows a run that has changed something: builds a generation if much has, and nobody else does."""
        ...
