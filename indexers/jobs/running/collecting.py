"""What the report of a run needs beyond the counts in the store; bounded, however many documents there are.

It is what the process that leads the run has seen: documents that other workers wrote are in the counts, not in here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from indexers.duplicates import MOST, NearDuplicates
from indexers.jobs.report import LISTED, NearDuplicate, Noted, SlowItem, SpeedPoint
from indexers.jobs.report_parts import ChunkLengths, Course, Slowest
from indexers.jobs.running.known import Known
from indexers.jobs.running.progress import ItemProgress
from indexers.jobs.running.settled import Settled
from indexers.jobs.state import DocumentState
from indexers.language import LANGUAGE_FIELD
from indexers.types import Document


class Collected:
    """Adds up what becomes of documents in this process."""

    def __init__(self, known: Known, near_duplicates: float) -> None:
        """`near_duplicates` is the similarity from which on documents are reported as such; 0 looks for none."""
        self.duplicates: list[NearDuplicate] = []
        self.duplicate_count = 0
        self._known = known
        self._looking = near_duplicates > 0
        self._threshold = near_duplicates
        self._near: NearDuplicates | None = None
        self.chunk_lengths = ChunkLengths()
        self.languages: Counter[str] = Counter()  # of documents that were written
        self.warnings: list[Noted] = []
        self._begun = time.monotonic()
        self._course = Course()
        self._slowest = Slowest()
        self._documents = 0
        self._chunks = 0
        self._tokens = 0

    def add(self, settled: Sequence[Settled]) -> None:
        """Takes what became of a batch."""
        for one in settled:
            record = one.record
            self._documents += 1
            self.warnings += [Noted(record.document_id, text) for text in record.warnings]
            if record.state is DocumentState.VERIFIED:
                self._chunks += record.chunk_count
                self._tokens += record.token_count
                self.chunk_lengths.add(one.chunk_tokens)
                if one.document is not None and (language := one.document.metadata.get(LANGUAGE_FIELD)):
                    self.languages[str(language)] += 1
        del self.warnings[LISTED:]
        if self._looking and (written := [one.document for one in settled if one.document is not None]):
            self._find_duplicates(written)
        self._course.add(self._point())

    def _find_duplicates(self, written: Sequence[Document]) -> None:
        if self._near is None:
            self._near = NearDuplicates(self._threshold, self._known.signatures(MOST))
        signatures: list[tuple[str, bytes]] = []
        for document in written:
            similar, signature = self._near.find(document.document_id, document.text)
            if signature:
                signatures.append((document.document_id, signature))
            if similar is not None:
                self.duplicate_count += 1
                self.duplicates.append(NearDuplicate(document.document_id, similar.document_id, similar.similarity))
        del self.duplicates[LISTED:]
        self._known.keep_signatures(signatures)

    def add_item(self, item: ItemProgress, seconds: float) -> None:
        """Takes how long an item took to be read."""
        self._slowest.add(SlowItem(item.lease.name, seconds, item.found))

    @property
    def seconds(self) -> float:
        """How long this process has worked on the run."""
        return time.monotonic() - self._begun

    @property
    def course(self) -> tuple[SpeedPoint, ...]:
        """How far the run was at each moment."""
        return self._course.points(self._point())

    @property
    def slowest(self) -> tuple[SlowItem, ...]:
        """The items that took longest to read, slowest first."""
        return self._slowest.items

    def _point(self) -> SpeedPoint:
        return SpeedPoint(self.seconds, self._documents, self._chunks, self._tokens, _resident_bytes())


def _resident_bytes() -> int:
    """Returns the memory of this process; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0
    return pages * _PAGE_BYTES


_PAGE_BYTES = 4096
