"""Works on the items of one run: leases them, reads several at once, writes what comes out in batches, settles them.

Several processes may do so for one run. Whatever a worker loses (its lease, its life) is leased to another, and what it
had written by then is found unchanged.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import Protocol

from indexers.jobs.running.batches import Batches
from indexers.jobs.running.known import Known
from indexers.jobs.running.parts import RunParts
from indexers.jobs.running.preparing import Parsed
from indexers.jobs.running.progress import ItemProgress
from indexers.jobs.running.reaching import Reaching
from indexers.jobs.running.reading import ItemFailed, ItemReader
from indexers.jobs.running.retrying import with_backoff
from indexers.jobs.running.settled import Settled
from indexers.jobs.state import DocumentRecord, DocumentState, ItemOutcome, ItemState, Run
from indexers.parsing.parsed import ParsedDocument, ParseFailure

_LOOK_AGAIN_S = 0.5  # at a queue that has nothing due


class WorksOnItems(Protocol):
    """Whoever works on the items of a run: this process, or a cluster that it leads."""

    def wake(self) -> None:
        """Has it look at the queue at once: something was offered, or nothing more will be."""
        ...

    async def renew(self) -> None:
        """Prolongs the leases that it holds; what comes of those that it has lost is of no matter any more."""
        ...

    async def work(self, more_to_come: Callable[[], bool]) -> None:
        """Works until nothing is left to lease and nothing more will come."""
        ...


class ItemWorker:
    """One process' share of a run."""

    def __init__(self, parts: RunParts, run: Run, reader: ItemReader, batches: Batches, known: Known) -> None:
        self._parts = parts
        self._run_id = run.run_id
        self._limits = run.spec.limits
        self._reader = reader
        self._batches = batches
        self._known = known
        self._reaching = Reaching(parts.patience_s)
        self._held: dict[str, ItemProgress] = {}
        self._moved = asyncio.Event()  # set when an item is settled

    def wake(self) -> None:
        """Has the worker look at the queue at once: something was offered, or nothing more will be."""
        self._moved.set()

    async def renew(self) -> None:
        """Prolongs the leases that this worker holds; what comes of those that it has lost is of no matter any more."""
        held = [item for item in self._held.values() if not item.lost]
        if held:
            leases = [item.lease for item in held]
            renewed = await self._reaching.reach(partial(self._parts.store.renew_items, leases, self._parts.lease_s))
            kept = {lease.uri for lease in renewed}
            for item in held:
                item.lost = item.lease.uri not in kept

    async def work(self, more_to_come: Callable[[], bool]) -> None:
        """Works until nothing is left to lease and nothing more will come.

        Raises:
            TargetUnavailable, IndexUnavailable, JobStoreUnavailable: out of reach for longer than is bearable.
            IndexerError: the target does not take the work.
        """
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._batches.run(self._settle))
            await self._read_all(more_to_come)
            await self._batches.end()

    async def _read_all(self, more_to_come: Callable[[], bool]) -> None:
        free = asyncio.Semaphore(self._parts.readers)
        async with asyncio.TaskGroup() as reading:
            while True:
                # Both before the queue is asked: what is offered or settled in between is not missed.
                self._moved.clear()
                more = more_to_come()
                for item in await self._lease():
                    await free.acquire()
                    reading.create_task(self._read(item, free))
                    more = True
                if more or self._held:
                    await self._pause()
                elif (due_s := await self._due_s()) is None:
                    return
                else:
                    await self._pause(min(due_s, _LOOK_AGAIN_S))

    async def _due_s(self) -> float | None:
        return await self._reaching.reach(partial(self._parts.store.next_due_s, self._run_id))

    async def _pause(self, at_most_s: float = _LOOK_AGAIN_S) -> None:
        """Waits until an item is settled, or for a moment."""
        with suppress(TimeoutError):
            async with asyncio.timeout(at_most_s):
                await self._moved.wait()

    async def _lease(self) -> list[ItemProgress]:
        """Leases items when few are held; the collection's state is read before any of them is opened."""
        parts = self._parts
        if len(self._held) >= parts.items_per_lease:
            return []
        looked = await self._reaching.reach(lambda: parts.target.look([]))
        leases = await self._reaching.reach(
            lambda: parts.store.lease_items(
                self._run_id, parts.worker, parts.items_per_lease, parts.lease_s, attempts=self._limits.attempts
            )
        )
        fresh = [ItemProgress(lease, looked.write_sequence) for lease in leases]
        self._held.update((item.lease.uri, item) for item in fresh)
        return fresh

    async def _read(self, item: ItemProgress, free: asyncio.Semaphore) -> None:
        begun = monotonic()
        try:
            if not item.lost and not await self._is_as_before(item):
                await self._read_through(item)
        except ItemFailed as failed:
            item.outcome = failed.outcome
        finally:
            free.release()
            self._batches.collected.add_item(item, monotonic() - begun)
        item.read = True
        await self._settle_items([item])

    async def _is_as_before(self, item: ItemProgress) -> bool:
        """Tells whether an item and all that came out of it are as an earlier run left them, without reading it."""
        documents = self._known.item(item.lease.uri, item.lease.fingerprint)
        if not documents:
            return False
        looked = await self._reaching.reach(lambda: self._parts.target.look(list(documents)))
        if {name: one.fingerprint for name, one in looked.documents.items()} != documents:
            return False
        records = [
            DocumentRecord(name, item.lease.uri, DocumentState.UNCHANGED, fingerprint=fingerprint)
            for name, fingerprint in documents.items()
        ]
        await self._reaching.reach(lambda: self._parts.store.record(self._run_id, self._parts.worker, records))
        item.found = len(records)
        for record in records:
            item.settle(record)
        return True

    async def _read_through(self, item: ItemProgress) -> None:
        """Reads an item to its end. One failure and nothing else is the failure of the item."""
        batch: list[ParsedDocument | ParseFailure] = []
        async for following in self._reader.read(item.lease):
            await self._put(item, batch)
            if item.lost:
                return
            batch = following
        if item.found == 0 and len(batch) == 1 and isinstance(failure := batch[0], ParseFailure):
            raise ItemFailed(ItemOutcome(ItemState.FAILED, failure.reason, failure.kind))
        await self._put(item, batch)

    async def _put(self, item: ItemProgress, batch: Sequence[ParsedDocument | ParseFailure]) -> None:
        item.found += len(batch)
        for parsed in batch:
            await self._batches.put(Parsed(item, parsed))

    async def _settle(self, settled: Sequence[Settled]) -> None:
        for one in settled:
            one.item.settle(one.record)
            one.item.again = one.item.again or one.again
        await self._settle_items(list({id(one.item): one.item for one in settled}.values()))

    async def _settle_items(self, items: Sequence[ItemProgress]) -> None:
        """Ends the leases of the items that are through."""
        done = [item for item in items if (item.done or item.lost) and self._held.get(item.lease.uri) is item]
        for item in done:
            if item.whole and not item.lost:
                self._known.keep_item(item.lease.uri, item.lease.fingerprint, item.stored)
        outcomes = [(item.lease, with_backoff(item, self._limits)) for item in done if not item.lost]
        if outcomes:
            await self._reaching.reach(lambda: self._parts.store.settle(outcomes))
        for item in done:
            self._held.pop(item.lease.uri, None)
        if done:
            self._moved.set()
