"""The driver's part of a run over a cluster: leases items, hands them to the stages, writes what comes back.

The state is the same as of a run on one machine: the same leases, records, conditional writes and proofs. Only this
process writes, since writing takes a hundredth of the time that encoding does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial

from indexers.jobs.index_target import IndexTarget
from indexers.jobs.running.collecting import Collected
from indexers.jobs.running.documents import Writable, parsed_record, proven, written_record
from indexers.jobs.running.parts import RunParts
from indexers.jobs.running.preparing import Prepared, SeenIds
from indexers.jobs.running.progress import ItemProgress
from indexers.jobs.running.reaching import Reaching
from indexers.jobs.running.retrying import with_backoff
from indexers.jobs.running.settled import Settled, failed, unchanged
from indexers.jobs.state import DocumentRecord, ItemOutcome, ItemState, Run
from indexers.sources.source import ItemRef
from indexers.types import Document
from retrieval.jobs.ray.cluster import Cluster
from retrieval.jobs.ray.rows import Failed, ItemRead, ItemToRead, Made, Ready, Unchanged
from retrieval.jobs.ray.stages import StageOptions

_WAVE_ITEMS = 1_000  # leased and run through the stages at a time
_BATCH = 64  # documents that are written at a time
_LOOK_AGAIN_S = 0.5
_PAGE = 1_000


class RayItems:
    """Works on the items of one run with a cluster."""

    def __init__(
        self, parts: RunParts, run: Run, cluster: Cluster, options: StageOptions, collected: Collected
    ) -> None:
        self._parts = parts
        self._run = run
        self._cluster = cluster
        self._options = options
        self._collected = collected
        self._reaching = Reaching(parts.patience_s)
        self._held: list[ItemProgress] = []
        self._seen = SeenIds()
        self._moved = asyncio.Event()
        assert isinstance(parts.target, IndexTarget)
        self._target = parts.target

    def wake(self) -> None:
        """Has the worker look at the queue at once."""
        self._moved.set()

    async def renew(self) -> None:
        """Prolongs the leases of the wave that is under way."""
        held = [item for item in self._held if not item.lost]
        if held:
            store, leases = self._parts.store, [item.lease for item in held]
            renewed = await self._reaching.reach(partial(store.renew_items, leases, self._parts.lease_s))
            kept = {lease.uri for lease in renewed}
            for item in held:
                item.lost = item.lease.uri not in kept

    async def work(self, more_to_come: Callable[[], bool]) -> None:
        """Works until nothing is left to lease and nothing more will come.

        Raises:
            JobError: the cluster, the store or the target is out of reach.
        """
        stored = await self._stored()
        while True:
            self._moved.clear()
            more = more_to_come()
            if await self._lease():
                await self._wave(stored)
                continue
            due_s = await self._reaching.reach(partial(self._parts.store.next_due_s, self._run.run_id))
            if not more and due_s is None:
                return
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_AGAIN_S if due_s is None else min(max(due_s, 0.05), _LOOK_AGAIN_S)):
                    await self._moved.wait()

    async def _stored(self) -> dict[str, str]:
        """Returns the fingerprints of the job's documents, so that the stages need ask nobody."""
        found: dict[str, str] = {}
        after = ""
        while page := await self._reaching.reach(partial(self._target.owned, self._run.spec.name, after, _PAGE)):
            ids = [name for name, _ in page]
            looked = await self._reaching.reach(partial(self._target.look, ids))
            found |= {name: one.fingerprint for name, one in looked.documents.items()}
            after = ids[-1]
        return found

    async def _lease(self) -> bool:
        parts = self._parts
        looked = await self._reaching.reach(partial(self._target.look, []))
        lease = partial(parts.store.lease_items, self._run.run_id, parts.worker, _WAVE_ITEMS, parts.lease_s)
        leases = await self._reaching.reach(partial(lease, attempts=self._run.spec.limits.attempts))
        self._held = [ItemProgress(lease, looked.write_sequence) for lease in leases]
        return bool(leases)

    async def _wave(self, stored: dict[str, str]) -> None:
        items = await asyncio.to_thread(self._to_read)
        made = self._cluster.run(items, self._options, stored)
        try:
            while batch := await asyncio.to_thread(_taken, made):
                await self._take(batch)
        finally:
            await asyncio.shield(asyncio.to_thread(_close, made))
        for item in self._held:
            if item.outcome is None and not item.done:
                item.outcome = ItemOutcome(ItemState.QUEUED, "the cluster gave nothing back for it", "worker_died")
        await self._settle([item for item in self._held if not item.lost])
        self._held = []

    def _to_read(self) -> list[ItemToRead]:
        """Items of sources that only this machine can open go along with their content."""
        return [
            ItemToRead(number, item.lease, self._content(item))
            for number, item in enumerate(self._held)
            if item.outcome is None
        ]

    def _content(self, item: ItemProgress) -> bytes | None:
        if self._run.spec.source.kind in ("folder", "files", "git"):
            return None
        lease = item.lease
        ref = ItemRef(lease.uri, lease.name, lease.fingerprint, lease.size_bytes)
        with self._parts.source.open(ref) as file:
            return file.path.read_bytes()

    async def _take(self, batch: Sequence[Made]) -> None:
        """Writes a batch and proves it; an item's end only says how much there is of it."""
        settled = [
            failed(self._held[one.number], one.failure.path, one.failure.reason, one.failure.kind)
            for one in batch
            if isinstance(one, Failed)
        ]
        ids = [_name(one) for one in batch if isinstance(one, Unchanged | Ready)]
        looked = await self._reaching.reach(partial(self._target.look, ids))
        ready: list[tuple[Writable, Ready]] = []
        for one in batch:
            if isinstance(one, Unchanged | Ready):
                item, name = self._held[one.number], _name(one)
                found = looked.documents.get(name)
                if self._seen.other_item(name, item.lease.uri):
                    settled.append(failed(item, f"{name} (again)", _AGAIN, "same_id"))
                elif found is not None and found.owner not in ("", self._run.spec.name):
                    settled.append(failed(item, name, f"job {found.owner!r} has a document of this id", "same_id"))
                elif isinstance(one, Ready):
                    ready.append((Writable(Prepared(item, one.document, ""), one.document, one.warnings), one))
                else:
                    settled.append(_unchanged(item, one, found.fingerprint if found else ""))
        settled += await self._write(ready)
        await self._record([one.record for one in settled if not one.again])
        self._collected.add(settled)
        for last in settled:
            last.item.settle(last.record)
            last.item.again = last.item.again or last.again
        for one in batch:
            if isinstance(one, ItemRead):
                item = self._held[one.number]
                item.found, item.read, item.outcome = one.found, True, one.outcome

    async def _write(self, ready: Sequence[tuple[Writable, Ready]]) -> list[Settled]:
        if not ready:
            return []
        await self._record([parsed_record(writable.prepared) for writable, _ in ready])
        since = min(writable.prepared.item.since for writable, _ in ready)
        encoded = [one.encoded for _, one in ready]
        report = await self._reaching.reach(partial(self._target.write_encoded, encoded, since))
        records = [
            written_record(writable, outcome) for (writable, _), outcome in zip(ready, report.outcomes, strict=True)
        ]
        await self._record([record for record in records if record is not None])
        looked = await self._reaching.reach(partial(self._target.look, [one.document.document_id for _, one in ready]))
        return [
            proven(writable, outcome, looked) for (writable, _), outcome in zip(ready, report.outcomes, strict=True)
        ]

    async def _record(self, records: Sequence[DocumentRecord]) -> None:
        if records:
            store = self._parts.store
            await self._reaching.reach(partial(store.record, self._run.run_id, self._parts.worker, records))

    async def _settle(self, items: Sequence[ItemProgress]) -> None:
        outcomes = [(item.lease, with_backoff(item, self._run.spec.limits)) for item in items]
        if outcomes:
            await self._reaching.reach(partial(self._parts.store.settle, outcomes))


_AGAIN = "a document with the same id came before it in this run; rename one of them"


def _name(one: Unchanged | Ready) -> str:
    return one.document_id if isinstance(one, Unchanged) else one.document.document_id


def _unchanged(item: ItemProgress, one: Unchanged, fingerprint: str) -> Settled:
    settled = unchanged(Prepared(item, Document(one.document_id, "", ""), ""), one.fingerprint)
    if fingerprint == one.fingerprint:
        return settled
    return replace(settled, again="was changed by somebody else since the run began")


def _taken(made: Iterator[Made]) -> list[Made]:
    """Returns the next rows; none at the end."""
    batch: list[Made] = []
    for one in made:
        batch.append(one)
        if len(batch) == _BATCH:
            break
    return batch


def _close(made: Iterator[Made]) -> None:
    if isinstance(made, Generator):
        made.close()
