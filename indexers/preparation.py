"""A document's way from its text to what the encoder takes; pure computing, so it belongs in a worker thread."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from encoders.terms import count_terms
from encoders.types import EncodedPassage, Outcome, TermCounts
from indexers.chunking import Chunker
from indexers.reports import DocumentOutcome, DocumentStatus
from indexers.types import Chunk, Document, EncodedChunk, EncodedDocument


@dataclass(frozen=True, slots=True)
class CheckedDocument:
    """A valid document with its fingerprint."""

    document: Document
    fingerprint: str
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A document cut into chunks, with the text to embed of each."""

    checked: CheckedDocument
    chunks: tuple[Chunk, ...]
    texts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Encoded:
    """What became of a document when it was encoded: something to write, unless the outcome says that it failed."""

    document: EncodedDocument | None
    outcome: DocumentOutcome


def prepare(checked: CheckedDocument, chunker: Chunker) -> PreparedDocument:
    """Cuts a document into chunks and puts the headers on."""
    document = checked.document
    chunks = chunker.chunk(document)
    texts = tuple(chunk.embedding_text for chunk in chunks)
    warned = CheckedDocument(document, checked.fingerprint, checked.warnings + chunker.warnings(document))
    return PreparedDocument(warned, chunks, texts)


def superseded(encoded: Encoded) -> Encoded:
    """Returns what became of a document that the index left alone."""
    reason = "somebody wrote or deleted it meanwhile"
    left = replace(
        encoded.outcome, status=DocumentStatus.SUPERSEDED, chunk_count=0, chunk_tokens=(), reason=reason, fingerprint=""
    )
    return Encoded(None, left)


def count_words(texts: Sequence[str]) -> list[Outcome[TermCounts]]:
    """Counts the words of texts for BM25; none can fail."""
    return [Outcome(count_terms(text), None, 0, False, 0, 0) for text in texts]


def assemble(
    prepared: PreparedDocument,
    outcomes: Sequence[Outcome[EncodedPassage]],
    terms: Sequence[Outcome[TermCounts]],
    *,
    keeps_codes: bool,
) -> Encoded:
    """Joins chunks, vectors, terms, and token codes where the collection keeps them.

    One chunk without a vector, or without terms, fails the document as a whole, and it alone.
    """
    document = prepared.checked.document
    tokens = sum(outcome.token_count for outcome in outcomes)
    chunks: list[EncodedChunk] = []
    for chunk, outcome, counted in zip(prepared.chunks, outcomes, terms, strict=True):
        if outcome.value is None or counted.value is None:
            error = outcome.error or counted.error
            reason = f"chunk {chunk.ordinal} (characters {chunk.start} to {chunk.end}): {error}"
            failed = DocumentOutcome(document.document_id, DocumentStatus.FAILED, token_count=tokens, reason=reason)
            return Encoded(None, failed)
        codes = outcome.value.codes if keeps_codes else None
        chunks.append(EncodedChunk(chunk, outcome.value.vector, counted.value, codes))
    written = DocumentOutcome(
        document.document_id,
        DocumentStatus.WRITTEN,
        chunk_count=len(chunks),
        token_count=tokens,
        fingerprint=prepared.checked.fingerprint,
        chunk_tokens=tuple(chunk.token_count for chunk in prepared.chunks),
        warnings=prepared.checked.warnings,
    )
    return Encoded(EncodedDocument(document, prepared.checked.fingerprint, tuple(chunks)), written)
