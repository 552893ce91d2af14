"""Lists the source into the run's queue; in a worker thread, a batch of items at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial

from indexers.jobs.running.parts import RunParts
from indexers.jobs.running.reaching import Reaching
from indexers.jobs.state import ItemOutcome, ItemState, RunClaim
from indexers.parsing.parsed import ParseFailure, SkippedFile
from indexers.sources.source import ItemRef, Scanned

_BATCH = 500


class TooManyItems(Exception):
    """The source lists more than the job allows."""


class Scanning:
    """One scan of one run."""

    def __init__(self, parts: RunParts, claim: RunClaim, wake: Callable[[], None]) -> None:
        """`wake` is called whenever there is something new to work on, and at the end."""
        self._parts = parts
        self._claim = claim
        self._wake = wake
        self._reaching = Reaching(parts.patience_s)
        self.done = False

    async def scan(self) -> None:
        """Offers everything that the source lists. A scan that was broken off begins anew; nothing is queued twice.

        Raises:
            SourceUnavailable: nothing is known of the source.
            TooManyItems: it lists more than `limits.max_documents`.
            LeaseLost: another worker coordinates the run.
        """
        limit = self._claim.run.spec.limits.max_documents
        scanned = 0
        items = await asyncio.to_thread(lambda: iter(self._parts.source.scan()))
        while batch := await asyncio.to_thread(_taken, items):
            scanned += len(batch)
            if scanned > limit:
                raise TooManyItems(f"the source lists more than limits.max_documents ({limit}); raise it or narrow it")
            await self._offer(batch)
            self._wake()
        await self._reaching.reach(partial(self._parts.store.mark_scanned, self._claim))
        self.done = True
        self._wake()

    async def _offer(self, batch: list[Scanned]) -> None:
        refs = [one for one in batch if isinstance(one, ItemRef)]
        if refs:
            await self._reaching.reach(partial(self._parts.store.offer, self._claim, refs))
        for one in batch:
            if isinstance(one, ParseFailure):
                outcome = ItemOutcome(ItemState.FAILED, one.reason, one.kind)
                await self._note(one.source_uri, one.path, outcome)
            elif isinstance(one, SkippedFile):
                await self._note(one.path, one.path, ItemOutcome(ItemState.SKIPPED, one.reason, "skipped"))

    async def _note(self, uri: str, name: str, outcome: ItemOutcome) -> None:
        await self._reaching.reach(partial(self._parts.store.fail_scanned, self._claim, uri, name, outcome))


def _taken(items: Iterator[Scanned]) -> list[Scanned]:
    """Returns the next items; none at the end."""
    batch: list[Scanned] = []
    for one in items:
        batch.append(one)
        if len(batch) == _BATCH:
            break
    return batch
