"""What a hit says about its passage, as the flat metadata that all three frameworks carry with a text."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, TypeAlias

from headrace.v1 import retrieval_pb2 as retrieval
from retrieval.server.convert.metadata import metadata_from_pb

if TYPE_CHECKING:
    from indexers.types import Scalar

Plain: TypeAlias = str | int | float | bool | list[str] | list["Plain"]

_FACTS = {"document_id", "chunk_id", "title", "heading_path", "source_uri", "score", "start", "end", "page"}


def hit_metadata(hit: retrieval.Hit) -> dict[str, Plain]:
    """Returns the document's metadata and the hit's own facts, in values that JSON can hold; times are ISO 8601 texts.

    `page` is left out when the document has no pages. A value of the document's whose name is a fact's stands as
    `metadata.NAME`, so that neither hides the other.
    """
    given = metadata_from_pb(hit.metadata, "metadata")
    named = {f"metadata.{name}" if name in _FACTS else name: _plain(value) for name, value in given.items()}
    return named | _facts(hit)


def _facts(hit: retrieval.Hit) -> dict[str, Plain]:
    facts: dict[str, Plain] = {
        "document_id": hit.document_id,
        "chunk_id": hit.chunk_id,
        "title": hit.title,
        "heading_path": list(hit.heading_path),
        "source_uri": hit.source_uri,
        "score": hit.score,
        "start": hit.start,
        "end": hit.end,
    }
    if hit.page:
        facts["page"] = hit.page
    return facts


def _plain(value: Scalar | tuple[Scalar, ...]) -> Plain:
    if isinstance(value, tuple):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else value
