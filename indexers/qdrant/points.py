"""How documents, chunks and collections are laid down as points, and read back.

On a server the texts live in the payload: it is the record. A chunk's point carries its raw term counts too, so a new
generation can be weighed anew without the documents.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid5

from qdrant_client import models

from encoders.statistics_file import load_statistics, save_statistics
from encoders.term_statistics import TermStatistics, document_vector
from encoders.types import SparseVector, TermCounts, TokenCodec
from indexers.notes import notes_from_json, notes_to_json
from indexers.payload import payload_of
from indexers.qdrant.conditions import FIELDS
from indexers.record_schema import definition_from_json, definition_to_json
from indexers.schema import coerce_metadata, metadata_from_json, metadata_to_json
from indexers.term_blob import pack_terms, unpack_terms
from indexers.types import (
    CollectionDefinition,
    CollectionKey,
    Document,
    DocumentSummary,
    EncodedChunk,
    EncodedDocument,
    FieldType,
    Passage,
    StoredDocument,
    TextFormat,
)

_TOKENS = "tokens"
_NAMESPACE = UUID("6f1d3c2a-58c1-4b1e-9a53-0d5f6d3b8e11")

PASSAGE = (
    *("document_id", "title", "heading_path", "text", "start", "end", "ordinal", "page", "metadata", "source_uri"),
    *("token_count", "header", "header_token_count"),
)
STORED = ("document_id", "fingerprint", "owner", "chunk_count", "write_sequence")
SUMMARY = ("document_id", "title", "metadata", "fingerprint", "chunk_count", "text_length", "source_uri", "indexed_at")


@dataclass(frozen=True, slots=True)
class CollectionState:
    """A collection as its own point says it is."""

    definition: CollectionDefinition
    generation: int
    write_sequence: int
    unfinished: int = 0  # the write that began last, when it has not ended; 0 for none


def point_id(*parts: str) -> str:
    """Returns the id of the one point that these parts name."""
    return str(uuid5(_NAMESPACE, "\x00".join(parts)))


def chunk_point(
    document: EncodedDocument,
    encoded: EncodedChunk,
    state: CollectionState,
    statistics: TermStatistics,
    codec: TokenCodec | None,
) -> models.PointStruct:
    """Lays down a chunk, its token vectors decoded; `version` is the write that brought it."""
    chunk, whole = encoded.chunk, document.document
    payload = {
        "tenant": state.definition.key.tenant,
        "version": state.write_sequence,
        "document_id": whole.document_id,
        "title": whole.title,
        "heading_path": list(chunk.heading_path),
        "text": chunk.text,
        "start": chunk.start,
        "end": chunk.end,
        "ordinal": chunk.ordinal,
        "page": chunk.page,
        "metadata": metadata_to_json(whole.metadata),
        "source_uri": whole.source_uri,
        "token_count": chunk.token_count,
        "header": chunk.header,
        "header_token_count": chunk.header_token_count,
        "notes": chunk.notes,
        "terms": base64.b64encode(pack_terms(encoded.terms)).decode(),
        FIELDS: payload_of(whole.metadata, state.definition.fields),
    }
    vectors = _vectors(encoded.dense.tolist(), encoded.terms, statistics)
    if codec is not None and encoded.codes is not None and len(encoded.codes):
        vectors[_TOKENS] = codec.decode(encoded.codes).tolist()
    return models.PointStruct(id=chunk.chunk_id, vector=vectors, payload=payload)


def token_count(point: models.PointStruct) -> int:
    """Counts a chunk's token vectors."""
    return len(point.vector.get(_TOKENS, ())) if isinstance(point.vector, dict) else 0  # type: ignore[arg-type]


def reweighed(record: models.Record, statistics: TermStatistics, fields: Mapping[str, FieldType]) -> models.PointStruct:
    """Lays a stored chunk down again, weighed by other statistics, its metadata under other fields."""
    payload = with_fields(dict(record.payload or {}), fields)
    stored: Any = record.vector
    vectors = _vectors(stored["dense"], stored_terms(record), statistics)
    vectors |= {_TOKENS: stored[_TOKENS]} if _TOKENS in stored else {}
    return models.PointStruct(id=record.id, vector=vectors, payload=payload)


def with_fields(payload: dict[str, Any], fields: Mapping[str, FieldType]) -> dict[str, Any]:
    """Returns a payload with its metadata coerced to a schema.

    Raises:
        TypeMismatch: a stored value cannot become the declared type.
    """
    metadata = coerce_metadata(metadata_from_json(payload["metadata"]), fields)
    return {**payload, "metadata": metadata_to_json(metadata), FIELDS: payload_of(metadata, fields)}


def stored_terms(record: models.Record) -> TermCounts:
    """Returns a stored chunk's term counts."""
    return unpack_terms(base64.b64decode((record.payload or {})["terms"]))


def document_point(encoded: EncodedDocument, state: CollectionState) -> models.PointStruct:
    """Lays down a document."""
    document = encoded.document
    payload = {
        "tenant": state.definition.key.tenant,
        "document_id": document.document_id,
        "title": document.title,
        "text": document.text,
        "format": document.format.value,
        "metadata": metadata_to_json(document.metadata),
        "source_uri": document.source_uri,
        "fingerprint": encoded.fingerprint,
        "chunk_count": len(encoded.chunks),
        "text_length": len(document.text),
        "indexed_at": datetime.now(UTC).isoformat(),
        "owner": document.owner,
        "notes": notes_to_json(document.notes) if document.notes else "",
        "write_sequence": state.write_sequence,
        FIELDS: payload_of(document.metadata, state.definition.fields),
    }
    return models.PointStruct(id=point_id(document.document_id), vector={}, payload=payload)


def state_point(state: CollectionState) -> models.PointStruct:
    """Lays down a collection, which nobody is changing."""
    key = state.definition.key
    payload = {"tenant": key.tenant, **state_payload(state)}
    return models.PointStruct(id=point_id(key.tenant, key.collection), vector={}, payload=payload)


def place_point(key: CollectionKey) -> models.PointStruct:
    """Lays down a place for a collection: whoever makes it takes his turn there, and nobody lists it."""
    return models.PointStruct(id=point_id(key.tenant, key.collection), vector={}, payload={"tenant": key.tenant})


def is_collection(payload: Mapping[str, Any]) -> bool:
    """Tells a collection's point from the place for one."""
    return "definition" in payload


def state_payload(state: CollectionState) -> dict[str, Any]:
    """Returns what may change of a collection's point."""
    return {
        "collection": state.definition.key.collection,
        "definition": definition_to_json(state.definition),
        "generation": state.generation,
        "write_sequence": state.write_sequence,
        "unfinished": state.unfinished,
    }


def statistics_point(key: CollectionKey, generation: int, statistics: TermStatistics) -> models.PointStruct:
    """Lays down the statistics of a generation; no collection is listed by it."""
    packed = io.BytesIO()
    save_statistics(statistics, packed)
    payload = {
        "tenant": key.tenant,
        "statistics_of": key.collection,
        "statistics": base64.b64encode(packed.getvalue()).decode(),
    }
    return models.PointStruct(id=statistics_id(key, generation), vector={}, payload=payload)


def statistics_id(key: CollectionKey, generation: int) -> str:
    """Returns the id of a generation's statistics."""
    return point_id(key.tenant, key.collection, str(generation))


def passage_of(record: models.Record) -> Passage:
    """Reads a chunk."""
    payload = {name: (record.payload or {})[name] for name in PASSAGE}
    payload["metadata"] = metadata_from_json(payload["metadata"])
    payload["heading_path"] = tuple(payload["heading_path"])
    return Passage(chunk_id=str(record.id), **payload)


def document_of(record: models.Record) -> Document:
    """Reads a document."""
    payload = record.payload or {}
    return Document(
        document_id=payload["document_id"],
        title=payload["title"],
        text=payload["text"],
        format=TextFormat(payload["format"]),
        metadata=metadata_from_json(payload["metadata"]),
        source_uri=payload["source_uri"],
        owner=payload.get("owner", ""),
        notes=notes_from_json(payload["notes"]) if payload.get("notes") else (),
    )


def stored_of(record: models.Record) -> StoredDocument:
    """Reads what is stored of a document; an older version of ours wrote neither owners nor sequences."""
    payload = record.payload or {}
    sequence = int(payload.get("write_sequence", 0))
    return StoredDocument(payload["fingerprint"], payload.get("owner", ""), payload["chunk_count"], sequence)


def summary_of(record: models.Record) -> DocumentSummary:
    """Reads a document without its text."""
    payload = {name: (record.payload or {})[name] for name in SUMMARY}
    payload["metadata"] = metadata_from_json(payload["metadata"])
    payload["indexed_at"] = datetime.fromisoformat(payload["indexed_at"])
    return DocumentSummary(**payload)


def state_of(payload: Mapping[str, Any]) -> CollectionState:
    """Reads a collection from its point's payload."""
    definition = definition_from_json(payload["definition"])
    numbers = (int(payload["generation"]), int(payload["write_sequence"]), int(payload.get("unfinished", 0)))
    return CollectionState(definition, *numbers)


def statistics_of(record: models.Record) -> TermStatistics:
    """Reads statistics."""
    return load_statistics(io.BytesIO(base64.b64decode((record.payload or {})["statistics"])))


def sparse_model(vector: SparseVector) -> models.SparseVector:
    """Returns a sparse vector as the client takes it."""
    return models.SparseVector(indices=vector.indices.tolist(), values=vector.values.tolist())


def _vectors(dense: list[float], terms: TermCounts, statistics: TermStatistics) -> dict[str, Any]:
    return {"dense": dense, "sparse": sparse_model(document_vector(terms, statistics))}
