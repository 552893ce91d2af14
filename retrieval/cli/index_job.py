"""What `headrace index` hands to whoever does the work: this process, or a running server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from indexers.parsing.parsed import SourceItem


@dataclass(frozen=True, slots=True)
class IndexJob:
    """What is to be written where."""

    collection: str
    fields: Mapping[str, str]  # to declare, name to type
    items: Iterable[SourceItem]
    roots: tuple[str, ...]  # documents under these that do not come by are removed; empty removes none
    read: tuple[str, ...] = ()  # the URIs of all paths that are read
    replace_sources: bool = True  # whether a document may replace one of the same id from another file
