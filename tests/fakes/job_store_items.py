"""The items and documents of a JobStore in memory; `job_store.py` adds jobs and runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count

from indexers.errors import LeaseLost
from indexers.jobs.state import (
    DocumentRecord,
    DocumentState,
    Failure,
    ItemLease,
    ItemOutcome,
    ItemState,
    Job,
    JobKey,
    Run,
    RunClaim,
    RunState,
)
from indexers.sources.source import ItemRef

ENDED_ITEMS = frozenset({ItemState.DONE, ItemState.SKIPPED, ItemState.FAILED})
_GONE = frozenset({DocumentState.DELETING, DocumentState.DELETED})
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Item:
    ref: ItemRef
    state: ItemState = ItemState.QUEUED
    due: datetime = EPOCH
    worker: str = ""
    until: datetime = EPOCH
    fence: int = 0
    attempt: int = 0
    kind: str = ""


@dataclass
class Kept:
    run: Run
    until: datetime = EPOCH
    fence: int = 0
    items: dict[str, Item] = field(default_factory=dict)
    documents: dict[str, DocumentRecord] = field(default_factory=dict)


class MemoryItems:
    """What runs have leased, settled and recorded, in dictionaries."""

    def __init__(self, now: Callable[[], datetime] | None = None) -> None:
        self.moment = EPOCH
        self._now = now or (lambda: self.moment)
        self._numbers = count(1)
        self._jobs: dict[JobKey, Job] = {}
        self._runs: dict[str, Kept] = {}
        self._dead: dict[JobKey, dict[tuple[str, str], Failure]] = {}
        self._values: dict[JobKey, dict[str, bytes]] = {}
        self.reads = 0  # of runs, so that tests see how often somebody polls

    def pass_s(self, seconds: float) -> None:
        """Moves the clock."""
        self.moment += timedelta(seconds=seconds)

    async def offer(self, claim: RunClaim, refs: Sequence[ItemRef]) -> None:
        """Queues items."""
        kept = self._claimed(claim)
        for ref in refs:
            kept.items.setdefault(ref.uri, Item(ref))

    async def fail_scanned(self, claim: RunClaim, uri: str, name: str, outcome: ItemOutcome) -> None:
        """Notes what the scan could not list, or leaves out."""
        kept = self._claimed(claim)
        item = Item(ItemRef(uri, name, ""), outcome.state, kind=outcome.kind, attempt=1)
        kept.items[uri] = item
        self._note(kept, item, "", outcome.reason)

    async def lease_items(
        self, run_id: str, worker: str, limit: int, lease_s: float, *, attempts: int = 100
    ) -> list[ItemLease]:
        """Leases items that are free."""
        kept, now = self._runs.get(run_id), self._now()
        leases: list[ItemLease] = []
        for item in kept.items.values() if kept and not kept.run.state.ended else ():
            lapsed = item.state is ItemState.LEASED and item.until <= now
            if len(leases) == limit or not (lapsed or (item.state is ItemState.QUEUED and item.due <= now)):
                continue
            if lapsed and item.attempt >= attempts:
                item.state, item.kind = ItemState.FAILED, "worker_died"
                assert kept is not None
                self._note(kept, item, "", "its worker died, each time that it was tried")
                continue
            item.state, item.worker, item.until = ItemState.LEASED, worker, now + timedelta(seconds=lease_s)
            item.fence += 1
            item.attempt += 1
            assert kept is not None
            leases.append(_lease(kept, item))
        return leases

    async def renew_items(self, leases: Sequence[ItemLease], lease_s: float) -> list[ItemLease]:
        """Prolongs leases."""
        held = [(lease, item) for lease in leases if (item := self._held(lease))]
        for _, item in held:
            item.until = self._now() + timedelta(seconds=lease_s)
        return [lease for lease, _ in held]

    async def settle(self, settled: Sequence[tuple[ItemLease, ItemOutcome]]) -> list[ItemLease]:
        """Ends leases."""
        lost = []
        for lease, outcome in settled:
            item = self._held(lease)
            if item is None:
                lost.append(lease)
                continue
            item.state, item.worker, item.kind = outcome.state, "", outcome.kind
            item.due = self._now() + timedelta(seconds=outcome.retry_in_s)
            self._note(self._runs[lease.run_id], item, "", outcome.reason)
        return lost

    async def record(self, run_id: str, worker: str, documents: Sequence[DocumentRecord]) -> None:
        """Notes states of documents."""
        kept = self._runs[run_id]
        for record in documents:
            before = kept.documents.get(record.document_id)
            if record.state is DocumentState.UNCHANGED and before and before.state is DocumentState.VERIFIED:
                continue
            kept.documents[record.document_id] = record
            dead = self._dead.setdefault(kept.run.key, {})
            place = (record.item_uri, record.document_id)
            if record.state is DocumentState.FAILED:
                dead[place] = Failure(
                    run_id,
                    record.item_uri,
                    record.document_id,
                    record.document_id,
                    record.reason,
                    record.kind,
                    record.attempt,
                    self._now(),
                )
            elif record.state in {DocumentState.VERIFIED, DocumentState.UNCHANGED, DocumentState.DELETED}:
                dead.pop(place, None)

    async def seen(self, run_id: str, document_ids: Sequence[str]) -> set[str]:
        """Returns which documents have come by."""
        documents = self._runs[run_id].documents
        return {one for one in document_ids if one in documents and documents[one].state not in _GONE}

    async def failed_items(self, run_id: str) -> list[str]:
        """Returns the items whose documents are to be kept."""
        kept = {ItemState.DONE, ItemState.SKIPPED}
        return sorted(uri for uri, item in self._runs[run_id].items.items() if item.state not in kept)

    async def documents(
        self, run_id: str, states: Sequence[DocumentState] = (), after: str = "", limit: int = 1_000
    ) -> list[DocumentRecord]:
        """Returns documents by id."""
        found = [
            record
            for document_id, record in sorted(self._runs[run_id].documents.items())
            if document_id > after and (not states or record.state in states)
        ]
        return found[:limit]

    async def failures(self, key: JobKey, after: str = "", limit: int = 1_000) -> list[Failure]:
        """Returns dead letters."""
        dead = self._dead.get(key, {})
        return [failure for place, failure in sorted(dead.items()) if place[0] > after][:limit]

    async def next_due_s(self, run_id: str) -> float | None:
        """Returns when something is due."""
        times = [
            item.due if item.state is ItemState.QUEUED else item.until
            for item in self._runs[run_id].items.values()
            if item.state not in ENDED_ITEMS
        ]
        return max(0.0, (min(times) - self._now()).total_seconds()) if times else None

    async def remember(self, key: JobKey, name: str, value: bytes) -> None:
        """Keeps a value."""
        values = self._values.setdefault(key, {})
        values[name] = value
        if not value:
            del values[name]

    async def recall(self, key: JobKey, names: Sequence[str]) -> dict[str, bytes]:
        """Returns values."""
        values = self._values.get(key, {})
        return {name: values[name] for name in names if name in values}

    def _claimed(self, claim: RunClaim) -> Kept:
        kept = self._runs.get(claim.run.run_id)
        if kept is None or kept.fence != claim.fence or kept.run.state is not RunState.RUNNING:
            raise LeaseLost(f"run {claim.run.run_id}")
        return kept

    def _held(self, lease: ItemLease) -> Item | None:
        kept = self._runs.get(lease.run_id)
        item = kept.items.get(lease.uri) if kept else None
        held = item is not None and item.state is ItemState.LEASED and item.fence == lease.fence
        return item if held else None

    def _note(self, kept: Kept, item: Item, document_id: str, reason: str) -> None:
        dead = self._dead.setdefault(kept.run.key, {})
        if item.state is ItemState.FAILED:
            uri, name = item.ref.uri, item.ref.name
            failure = Failure(kept.run.run_id, uri, document_id, name, reason, item.kind, item.attempt, self._now())
            dead[uri, document_id] = failure
        elif item.state in ENDED_ITEMS:
            dead.pop((item.ref.uri, document_id), None)

    def _view(self, kept: Kept) -> Run:
        if not kept.items and not kept.documents:
            return kept.run
        failed = [item.kind for item in kept.items.values() if item.state is ItemState.FAILED]
        failed += [one.kind for one in kept.documents.values() if one.state is DocumentState.FAILED]
        return replace(
            kept.run,
            items=dict(Counter(item.state for item in kept.items.values())),
            documents=dict(Counter(one.state for one in kept.documents.values())),
            chunks=sum(one.chunk_count for one in kept.documents.values()),
            tokens=sum(one.token_count for one in kept.documents.values()),
            failures=dict(Counter(failed)),
        )


def _lease(kept: Kept, item: Item) -> ItemLease:
    ref = item.ref
    return ItemLease(
        kept.run.run_id,
        kept.run.key,
        ref.uri,
        ref.name,
        ref.fingerprint,
        ref.size_bytes,
        item.worker,
        item.fence,
        item.attempt,
    )
