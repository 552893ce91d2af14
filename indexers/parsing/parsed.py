"""What comes out of a file: documents, or the reason why there is none. Nothing is passed over in silence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from indexers.types import Document


@dataclass(frozen=True, slots=True)
class ParsedDocument:
    """A document, and what a person should know about how it was read."""

    document: Document
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ParseFailure:
    """A file, or one row of it, that gives no document; what was indexed from it before is kept.

    Kinds: `no_text`, `scanned`, `encrypted`, `bad_encoding`, `wrong_type` (not what its name says), `too_large`, `bomb`
    (grows out of proportion when read), `unsafe_path`, `unparsable`, `unreadable` (by the system), and where a child
    process parses also `timeout`, `memory` and `crashed`.
    """

    path: str  # as it is shown to people: relative to the root, with a line number where there is one
    source_uri: str  # of the file
    reason: str
    kind: str = "unparsable"  # a short constant word that failures are counted by


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A file that was found but is not meant to be read."""

    path: str
    reason: str


SourceItem: TypeAlias = ParsedDocument | ParseFailure | SkippedFile
