"""What became of a document of a batch: the record that is kept, and what the report takes from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from indexers.jobs.state import DocumentRecord, DocumentState
from indexers.types import Document

if TYPE_CHECKING:
    from indexers.jobs.running.preparing import Prepared
    from indexers.jobs.running.progress import ItemProgress


@dataclass(frozen=True, slots=True)
class Settled:
    """The last word on a document in this batch."""

    item: ItemProgress
    record: DocumentRecord
    digest: str = ""  # of what it was made from, where that is stored now
    chunk_tokens: tuple[int, ...] = ()  # of each chunk that was written
    document: Document | None = None  # that was written
    again: str = ""  # why its item has to be read again; the record is then of no matter


def failed(item: ItemProgress, name: str, reason: str, kind: str) -> Settled:
    """Returns what becomes of a document, or a row, that cannot be indexed."""
    attempt = item.lease.attempt
    record = DocumentRecord(name, item.lease.uri, DocumentState.FAILED, attempt=attempt, reason=reason, kind=kind)
    return Settled(item, record)


def skipped(one: Prepared, reason: str, kind: str) -> Settled:
    """Returns what becomes of a document that is left alone on purpose."""
    uri = one.item.lease.uri
    return Settled(one.item, DocumentRecord(one.name, uri, DocumentState.SKIPPED, reason=reason, kind=kind))


def unchanged(one: Prepared, fingerprint: str, warnings: tuple[str, ...] = ()) -> Settled:
    """Returns what becomes of a document that is stored as it is."""
    record = DocumentRecord(
        one.name,
        one.item.lease.uri,
        DocumentState.UNCHANGED,
        fingerprint=fingerprint,
        warnings=(*one.warnings, *warnings),
    )
    return Settled(one.item, record, one.digest)
