"""The Source protocol: lists what there is, and makes each of it a local file while it is read.

Everything is a file to whoever parses: rows of a database come as JSON lines, pages of a site as HTML. Sources are
synchronous and belong in worker threads; several threads may have items open at once, one thread scans.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParseFailure, SkippedFile


@dataclass(frozen=True, slots=True)
class ItemRef:
    """Something to read: a file, a page, a block of rows. It gives one document or many."""

    uri: str  # unique in the source, without credentials; the source URI of its documents
    name: str  # relative, with slashes: the id of its document; its suffix says how it is parsed
    fingerprint: str  # differs whenever the content may differ; empty when only reading it tells
    size_bytes: int = 0  # 0 when it is not known


Scanned: TypeAlias = ItemRef | ParseFailure | SkippedFile


class Source(Protocol):
    """One place that documents come from."""

    @property
    def complete(self) -> bool:
        """Whether documents that a whole scan does not come by are gone; False after a scan of changes only."""
        ...

    def scan(self) -> Iterator[Scanned]:
        """Yields what there is, in a stable order. What cannot be listed is a failure, whose documents are kept.

        Raises:
            SourceUnavailable: the source as a whole cannot be reached, so nothing is known of it.
        """
        ...

    def open(self, ref: ItemRef) -> AbstractContextManager[SourceFile]:
        """Makes the item a local file while the block runs.

        Raises:
            ItemGone: it is no longer there.
            ItemUnreadable: it can never be read so: too large, forbidden, an address that is not allowed.
            SourceUnavailable: it cannot be read now; trying again may help.
        """
        ...

    def commit(self) -> None:
        """Takes note that everything of the last scan is indexed, as a watermark is."""
        ...

    def close(self) -> None:
        """Releases connections and files; a second call does nothing."""
        ...


@runtime_checkable
class Watched(Protocol):
    """A source that can tell when something has changed."""

    def wait(self, timeout_s: float) -> bool:
        """Waits until something has changed since the last scan began; False when nothing did in that time."""
        ...


@runtime_checkable
class Deletes(Protocol):
    """A source that is told which documents are gone, and need not find out by a scan of everything."""

    def deleted_ids(self) -> Sequence[str]:
        """Returns the ids of documents that the last scan, once it is through, has found to be deleted."""
        ...
