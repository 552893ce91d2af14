"""How far one item is: what has come out of it, what of that is settled, and what the item's outcome is."""

from __future__ import annotations

from dataclasses import dataclass, field

from indexers.jobs.state import DocumentRecord, DocumentState, ItemLease, ItemOutcome, ItemState

STORED = frozenset({DocumentState.VERIFIED, DocumentState.UNCHANGED})


@dataclass(slots=True)
class ItemProgress:
    """One leased item in this process."""

    lease: ItemLease
    since: int  # the collection's write sequence before the item was read
    found: int = 0  # documents and failed rows that came out so far
    settled: int = 0
    read: bool = False  # to its end
    outcome: ItemOutcome | None = None  # of an item that failed as a whole
    stored: dict[str, str] = field(default_factory=dict)  # id to fingerprint
    again: str = ""  # why the item has to be read again
    failed: int = 0
    lost: bool = False  # another worker has it

    @property
    def done(self) -> bool:
        """Whether everything that came out of the item is settled, and nothing more will."""
        return self.outcome is not None or (self.read and self.settled == self.found)

    def settle(self, record: DocumentRecord) -> None:
        """Takes the last state of one document of the item."""
        self.settled += 1
        if record.state in STORED:
            self.stored[record.document_id] = record.fingerprint
        self.failed += record.state is DocumentState.FAILED

    @property
    def whole(self) -> bool:
        """Whether everything that came out of the item is stored as it should be."""
        return self.done and len(self.stored) == self.found > 0

    def result(self, attempts: int) -> ItemOutcome:
        """Returns what becomes of the item: done, tried again, or given up; `retry_in_s` is the source's wish."""
        outcome = self.outcome
        if outcome is None and self.again:
            outcome = ItemOutcome(ItemState.QUEUED, self.again, "superseded")
        if outcome is None:
            return ItemOutcome(ItemState.DONE)
        if outcome.state is ItemState.QUEUED and self.lease.attempt >= attempts:
            reason = f"{outcome.reason} (tried {self.lease.attempt} times)"
            return ItemOutcome(ItemState.FAILED, reason, outcome.kind)
        return outcome
