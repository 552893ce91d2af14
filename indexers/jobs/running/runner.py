"""Carries out one claimed run: scan beside work, then delete what is gone, then report. Read this first.

The run is claimed for a while and the claim is renewed; whoever loses it stops at once and leaves everything to the
worker that has it. A run that was broken off anywhere is claimed again and goes through the same steps: what is
offered, settled and written already is found so.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from indexers.errors import IndexerError, LeaseLost
from indexers.jobs.running.ending import Ending, state_of
from indexers.jobs.running.gone import Deleting
from indexers.jobs.running.parts import RunParts
from indexers.jobs.running.reaching import Reaching
from indexers.jobs.running.reporting import Reporting
from indexers.jobs.running.scanning import Scanning, TooManyItems
from indexers.jobs.running.share import Share, share_of
from indexers.jobs.state import DocumentState, Run, RunClaim, RunState
from indexers.sources.source import Deletes

_CHANGES = (DocumentState.VERIFIED, DocumentState.WRITTEN, DocumentState.DELETED)


class RunCancelled(Exception):
    """Somebody asked for the run to stop."""


class JobRunner:
    """Coordinates one run."""

    def __init__(self, parts: RunParts, claim: RunClaim) -> None:
        self._parts = parts
        self._claim = claim
        self._run = claim.run
        self._reaching = Reaching(parts.patience_s)

    async def run(self) -> Run:
        """Carries out the run to one of its ends and returns it as it is stored.

        Raises:
            LeaseLost: another worker has the run; nothing was ended.
            JobStoreUnavailable: the end could not be stored; the run will be claimed again.
        """
        with share_of(self._parts, self._run) as share:
            state, reason = await self._outcome(share)
            reporting = Reporting(self._parts, share)
            return await Ending(self._parts, self._claim, reporting).end(state, reason)

    async def _outcome(self, share: Share) -> tuple[RunState, str]:
        try:
            return await self._supervised(share)
        except ExceptionGroup as group:
            causes = _leaves(group)
        for kind in (LeaseLost, RunCancelled, TooManyItems, IndexerError):
            if found := [one for one in causes if isinstance(one, kind)]:
                if isinstance(found[0], LeaseLost):
                    raise found[0]
                return _ended_by(found[0])
        raise causes[0]

    async def _supervised(self, share: Share) -> tuple[RunState, str]:
        """Carries out the run while its claim and leases are renewed; whichever fails stops the other."""
        async with asyncio.TaskGroup() as tasks:
            renewing = tasks.create_task(self._renew(share))
            outcome = await self._carry_out(share)
            renewing.cancel()
        return outcome

    async def _carry_out(self, share: Share) -> tuple[RunState, str]:
        scanning = Scanning(self._parts, self._claim, share.items.wake)
        async with asyncio.TaskGroup() as tasks:
            if not self._run.scanned:
                tasks.create_task(scanning.scan())
            await share.items.work(lambda: not (self._run.scanned or scanning.done))
        waiting = "" if self._run.request.only_failures else await self._delete_gone(share)
        run = await self._reach_run()
        if any(run.documents.get(state) for state in _CHANGES):
            await self._reaching.reach(self._parts.target.finish)
        return (RunState.WAITING, waiting) if waiting else state_of(run)

    async def _delete_gone(self, share: Share) -> str:
        """Deletes what is gone at the source; returns why that was not done, if it was not."""
        source = self._parts.source
        deleting = Deleting(self._parts, self._run.spec, self._run.run_id, share.known)
        named: Sequence[str] = source.deleted_ids() if isinstance(source, Deletes) else ()
        gone = await deleting.find(named, only_named=not source.complete)
        if not self._run.request.allow_shrink and (reason := deleting.too_many(gone)):
            return reason
        await deleting.delete(gone)
        return ""

    async def _renew(self, share: Share) -> None:
        """Prolongs the claim and the leases, and hears of a wish to stop."""
        store, lease_s = self._parts.store, self._parts.lease_s
        while True:
            await asyncio.sleep(min(lease_s / 3, 1.0))
            run = await self._reaching.reach(partial(store.renew_run, self._claim, lease_s))
            if run.cancel_requested:
                raise RunCancelled
            await share.items.renew()

    async def _reach_run(self) -> Run:
        store, run = self._parts.store, self._run
        return await self._reaching.reach(partial(store.get_run, run.key.tenant, run.run_id))


def _ended_by(error: Exception) -> tuple[RunState, str]:
    if isinstance(error, RunCancelled):
        return RunState.CANCELLED, "was asked to stop; what was written stays"
    return RunState.FAILED, str(error)


def _leaves(group: ExceptionGroup[Exception]) -> list[Exception]:
    found: list[Exception] = []
    for one in group.exceptions:
        found += _leaves(one) if isinstance(one, ExceptionGroup) else [one]
    return found
