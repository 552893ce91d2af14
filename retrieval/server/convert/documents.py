"""Documents and what became of them: protobuf messages to values and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

from headrace.v1 import index_pb2
from indexers.reports import DocumentOutcome, DocumentStatus
from indexers.types import Document, DocumentSummary, Epoch, TextFormat
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
