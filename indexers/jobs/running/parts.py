"""What a run is carried out with, opened and closed by whoever starts it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from indexers.jobs.enriching import Enricher
from indexers.jobs.state import Run
from indexers.jobs.store import JobStore
from indexers.jobs.target import Target
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import SourceItem
from indexers.sources.source import Source

if TYPE_CHECKING:
    from indexers.jobs.running.collecting import Collected
    from indexers.jobs.running.items import WorksOnItems


class ItemsOf(Protocol):
    """Makes who works on the items of a run."""

    def __call__(self, parts: RunParts, run: Run, collected: Collected) -> WorksOnItems:
        """Returns it for one run."""
        ...


class Parsers(Protocol):
    """What makes documents of files: the sandbox, or in tests this process."""

    def parse(self, file: SourceFile, options: ParseOptions) -> Iterator[SourceItem]:
        """Yields the documents of a file and what failed of it; blocks, so it belongs in a worker thread."""
        ...


@dataclass(frozen=True, slots=True)
class RunParts:
    """The parts of one run in one process."""

    store: JobStore
    source: Source
    parsers: Parsers
    target: Target
    folder: Path  # of the job in this machine's data folder: what is known of documents, reports
    worker: str
    lease_s: float = 30.0
    items_per_lease: int = 32
    readers: int = 2  # items that are read at once
    enricher: Enricher | None = None
    patience_s: float = 600.0  # for a target that cannot be reached
    items_of: ItemsOf | None = None  # who works on the items; None for this process
