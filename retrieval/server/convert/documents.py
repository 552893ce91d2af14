"""Documents and what became of them: protobuf messages to values and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from headrace.v1 import index_pb2
from indexers.reports import DocumentOutcome, DocumentStatus
from indexers.types import Document, DocumentSummary, Epoch, Note, TextFormat
from retrieval.errors import InvalidRequest
from retrieval.server.convert.ledgers import epoch_to_pb
from retrieval.server.convert.metadata import datetime_to_pb, metadata_from_pb, metadata_to_pb

MAX_NAMED = 100
_FORMATS: Mapping[int, TextFormat] = {
    index_pb2.TEXT_FORMAT_UNSPECIFIED: TextFormat.PLAIN,
    index_pb2.TEXT_FORMAT_PLAIN: TextFormat.PLAIN,
    index_pb2.TEXT_FORMAT_MARKDOWN: TextFormat.MARKDOWN,
}
_FORMAT_NUMBERS = {
    TextFormat.PLAIN: index_pb2.TEXT_FORMAT_PLAIN,
    TextFormat.MARKDOWN: index_pb2.TEXT_FORMAT_MARKDOWN,
}
_STATUS_NUMBERS: Mapping[DocumentStatus, index_pb2.DocumentStatus.ValueType] = {
    DocumentStatus.WRITTEN: index_pb2.DOCUMENT_STATUS_WRITTEN,
    DocumentStatus.UNCHANGED: index_pb2.DOCUMENT_STATUS_UNCHANGED,
    DocumentStatus.FAILED: index_pb2.DOCUMENT_STATUS_FAILED,
    DocumentStatus.SUPERSEDED: index_pb2.DOCUMENT_STATUS_SUPERSEDED,
}
_STATUSES: Mapping[int, DocumentStatus] = {number: status for status, number in _STATUS_NUMBERS.items()}


def document_from_pb(message: index_pb2.Document, path: str) -> Document:
    """Returns the document; `path` names it in errors. What it must be to be indexed is for the indexer to check.

    Raises:
        InvalidRequest: an unknown format, or a metadata value that is not usable.
    """
    if message.format not in _FORMATS:
        bound = "one of the declared values"
        raise InvalidRequest(f"{path}.format", bound, f"{path}.format is {message.format}; it must be {bound}")
    return Document(
        document_id=message.id,
        title=message.title,
        text=message.text,
        format=_FORMATS[message.format],
        metadata=metadata_from_pb(message.metadata, f"{path}.metadata"),
        source_uri=message.source_uri,
        owner=message.owner,
        notes=tuple(Note(note.start, note.end, note.text) for note in message.notes),
    )


def document_to_pb(document: Document) -> index_pb2.Document:
    """Returns the document as a message."""
    return index_pb2.Document(
        id=document.document_id,
        title=document.title,
        text=document.text,
        format=_FORMAT_NUMBERS[document.format],
        metadata=metadata_to_pb(document.metadata),
        source_uri=document.source_uri,
        owner=document.owner,
        notes=[index_pb2.Note(start=note.start, end=note.end, text=note.text) for note in document.notes],
    )


def outcome_to_pb(outcome: DocumentOutcome) -> index_pb2.DocumentOutcome:
    """Returns what became of a document as a message."""
    return index_pb2.DocumentOutcome(
        document_id=outcome.document_id,
        status=_STATUS_NUMBERS[outcome.status],
        chunk_count=outcome.chunk_count,
        token_count=outcome.token_count,
        reason=outcome.reason,
        fingerprint=outcome.fingerprint,
        warnings=outcome.warnings,
        chunk_tokens=outcome.chunk_tokens,
    )


def outcome_from_pb(message: index_pb2.DocumentOutcome) -> DocumentOutcome:
    """Returns what became of a document; a status of a later version counts as a failure."""
    return DocumentOutcome(
        document_id=message.document_id,
        status=_STATUSES.get(message.status, DocumentStatus.FAILED),
        chunk_count=message.chunk_count,
        token_count=message.token_count,
        reason=message.reason,
        fingerprint=message.fingerprint,
        warnings=tuple(message.warnings),
        chunk_tokens=tuple(message.chunk_tokens),
    )


def summary_to_pb(summary: DocumentSummary) -> index_pb2.DocumentSummary:
    """Returns the summary as a message."""
    return index_pb2.DocumentSummary(
        id=summary.document_id,
        title=summary.title,
        metadata=metadata_to_pb(summary.metadata),
        fingerprint=summary.fingerprint,
        chunk_count=summary.chunk_count,
        text_length=summary.text_length,
        source_uri=summary.source_uri,
        index_time=datetime_to_pb(summary.indexed_at),
    )


class UpsertTally:
    """Adds up what became of documents, over one call or over the batches of an import."""

    def __init__(self) -> None:
        self._result = index_pb2.UpsertResult()

    def add(self, outcomes: Iterable[DocumentOutcome]) -> None:
        """Counts outcomes; the first hundred failures and warnings are named."""
        result = self._result
        for outcome in outcomes:
            result.indexed += outcome.status is DocumentStatus.WRITTEN
            result.unchanged += outcome.status is DocumentStatus.UNCHANGED
            result.superseded += outcome.status is DocumentStatus.SUPERSEDED
            result.chunks += outcome.chunk_count
            if outcome.status is DocumentStatus.FAILED:
                result.failed += 1
                self._name(result.failures, outcome.document_id, outcome.reason)
            for warning in outcome.warnings:
                self._name(result.warnings, outcome.document_id, warning)

    def result(self, epoch: Epoch) -> index_pb2.UpsertResult:
        """Returns the sum as a message."""
        self._result.epoch.CopyFrom(epoch_to_pb(epoch))
        return self._result

    @staticmethod
    def _name(
        listed: RepeatedCompositeFieldContainer[index_pb2.DocumentFailure], document_id: str, reason: str
    ) -> None:
        if len(listed) < MAX_NAMED:
            listed.add(document_id=document_id, reason=reason)
