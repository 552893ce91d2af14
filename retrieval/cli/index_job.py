"""What `headrace index` hands to whoever does the work: this process, or a running server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from indexers.parsing.parsed import ParsedDocument, SourceItem
from indexers.types import Metadata

if TYPE_CHECKING:
    from indexers.sources import FileSource


@dataclass(frozen=True, slots=True)
class IndexJob:
    """What is to be written where."""

    collection: str
    fields: Mapping[str, str]  # to declare, name to type
    items: Iterable[SourceItem]
    roots: tuple[str, ...]  # documents under these that do not come by are removed; empty removes none


class Reading:
    """The documents of files as they go by, with metadata added; it is stronger than a document's own."""

    def __init__(self, source: FileSource, metadata: Metadata) -> None:
        self._source = source
        self._metadata = metadata
        self._characters = 0

    def __iter__(self) -> Iterator[SourceItem]:
        for item in self._source:
            if isinstance(item, ParsedDocument):
                document = item.document
                self._characters += len(document.text)
                metadata = {**document.metadata, **self._metadata}
                yield replace(item, document=replace(document, metadata=metadata))
            else:
                yield item

    def done_bytes(self) -> int:
        """Returns how much was read; inside a large file its characters stand for bytes."""
        return max(self._source.read_bytes, min(self._characters, self._source.total_bytes))
