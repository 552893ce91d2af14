"""Helps with a run that another process leads: works on its items, and nothing else."""

from __future__ import annotations

import asyncio
from functools import partial

from indexers.jobs.running.parts import RunParts
from indexers.jobs.running.reaching import Reaching
from indexers.jobs.running.share import Share, share_of
from indexers.jobs.state import Run, RunState


class Assistant:
    """One process' help with one run."""

    def __init__(self, parts: RunParts, run: Run) -> None:
        self._parts = parts
        self._run = run
        self._reaching = Reaching(parts.patience_s)
        self._wanted = True

    async def run(self) -> None:
        """Works on items until the run has none left, or ends.

        Raises:
            ExceptionGroup: of what `ItemWorker.work` raises.
        """
        with share_of(self._parts, self._run) as share:
            async with asyncio.TaskGroup() as tasks:
                watching = tasks.create_task(self._watch(share))
                working = tasks.create_task(share.items.work(lambda: False))
                await asyncio.wait({watching, working}, return_when=asyncio.FIRST_COMPLETED)
                watching.cancel()
                working.cancel()

    async def _watch(self, share: Share) -> None:
        """Prolongs the leases until the run no longer goes on."""
        store, run = self._parts.store, self._run
        while run.state is RunState.RUNNING and not run.cancel_requested:
            await asyncio.sleep(min(self._parts.lease_s / 3, 1.0))
            await share.items.renew()
            run = await self._reaching.reach(partial(store.get_run, run.key.tenant, run.run_id))
