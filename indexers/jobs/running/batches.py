"""Collects documents of several items into batches that the encoder likes, a few of which are written at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from indexers.jobs.running.collecting import Collected
from indexers.jobs.running.documents import DocumentWriting
from indexers.jobs.running.preparing import Parsed
from indexers.jobs.running.reading import BATCH_CHARACTERS, BATCH_DOCUMENTS
from indexers.jobs.running.settled import Settled
from indexers.parsing.parsed import ParsedDocument

_QUEUED = 2 * BATCH_DOCUMENTS
_IN_FLIGHT = 4
_GATHER_S = 0.05  # how long a batch waits for more to come


class Batches:
    """A bounded queue of documents with one writer behind it. `put` waits while writing is behind."""

    def __init__(self, writing: DocumentWriting, collected: Collected) -> None:
        self._writing = writing
        self.collected = collected
        self._queue: asyncio.Queue[Parsed | None] = asyncio.Queue(_QUEUED)
        self._free = asyncio.Semaphore(_IN_FLIGHT)

    async def put(self, parsed: Parsed) -> None:
        """Adds what came out of an item."""
        await self._queue.put(parsed)

    async def end(self) -> None:
        """Says that nothing more comes; what is queued is still written."""
        await self._queue.put(None)

    async def run(self, settle: Callable[[Sequence[Settled]], Awaitable[None]]) -> None:
        """Writes batches until the end, and hands on what became of the documents.

        Raises:
            TargetUnavailable, JobStoreUnavailable, IndexerError: writing cannot go on.
        """
        async with asyncio.TaskGroup() as tasks:
            while batch := await self._next():
                await self._free.acquire()
                tasks.create_task(self._write(batch, settle))

    async def _write(self, batch: list[Parsed], settle: Callable[[Sequence[Settled]], Awaitable[None]]) -> None:
        try:
            wanted = [one for one in batch if not one.item.lost]
            settled = await self._writing.write(wanted) if wanted else []
            self.collected.add(settled)
            await settle(settled)
        finally:
            self._free.release()

    async def _next(self) -> list[Parsed]:
        """Returns the next batch; an empty one at the end. What has come is not held back for long."""
        first = await self._queue.get()
        batch: list[Parsed] = []
        one: Parsed | None = first
        while one is not None:
            batch.append(one)
            if len(batch) == BATCH_DOCUMENTS or sum(map(_characters, batch)) >= BATCH_CHARACTERS:
                return batch
            try:
                async with asyncio.timeout(_GATHER_S):
                    one = await self._queue.get()
            except TimeoutError:
                return batch
        if batch:
            self._queue.put_nowait(None)  # the end was read, and must be read again
        return batch


def _characters(one: Parsed) -> int:
    return len(one.parsed.document.text) if isinstance(one.parsed, ParsedDocument) else 0
