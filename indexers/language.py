"""Detects the language of a document, which is stored as metadata `language` (ISO 639-1).

py3langid is the naive Bayes classifier of langid.py (Lui and Baldwin, 2012) on NumPy: 0.2 ms a text here, no network,
and a class of its own for text that is no language. Detectors with larger models take seconds to load, and tell short
texts apart, which a document is not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from indexers.types import Document

LANGUAGE_FIELD = "language"
REVISION = "py3langid-1"  # changes whenever the same text may be given another language

_LOOKED_AT = 600  # characters; more do not change the answer and take longer
_LEAST_LETTERS = 20
_NONE = "zxx"  # no linguistic content


def detect_language(text: str) -> str:
    """Returns the ISO 639-1 code of a text's language; empty when it is too short, or none can be told."""
    from py3langid import langid  # noqa: PLC0415 - loads its model, which only jobs need

    beginning = text[:_LOOKED_AT]
    if sum(map(str.isalpha, beginning)) < _LEAST_LETTERS:
        return ""
    language = str(langid.classify(beginning)[0])
    return "" if language == _NONE else language


def with_languages(documents: Sequence[Document]) -> list[Document]:
    """Returns the documents with their languages, where they do not say one themselves and one can be told."""
    return [_with_language(document) for document in documents]


def _with_language(document: Document) -> Document:
    if LANGUAGE_FIELD in document.metadata or not (language := detect_language(document.text)):
        return document
    return replace(document, metadata={**document.metadata, LANGUAGE_FIELD: language})
