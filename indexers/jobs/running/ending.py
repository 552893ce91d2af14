"""How a run ends: its state by what became of the documents, its report, and what follows an end."""

from __future__ import annotations

from functools import partial

from indexers.jobs.running.parts import RunParts
from indexers.jobs.running.reaching import Reaching
from indexers.jobs.running.reporting import Reporting
from indexers.jobs.state import DocumentState, ItemState, Run, RunClaim, RunState


def state_of(run: Run) -> tuple[RunState, str]:
    """Returns how a run has ended that went through all its steps, and why not better."""
    failed = run.items.get(ItemState.FAILED, 0) + run.documents.get(DocumentState.FAILED, 0)
    good = sum(run.documents.get(one, 0) for one in (DocumentState.VERIFIED, DocumentState.UNCHANGED))
    if not failed:
        return RunState.SUCCEEDED, ""
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(run.failures.items(), key=lambda one: -one[1]))
    reason = f"{failed} files or documents failed ({kinds})" if kinds else f"{failed} files or documents failed"
    return (RunState.PARTIAL if good else RunState.FAILED), reason


class Ending:
    """Ends one run."""

    def __init__(self, parts: RunParts, claim: RunClaim, reporting: Reporting) -> None:
        self._parts = parts
        self._claim = claim
        self._reporting = reporting
        self._reaching = Reaching(parts.patience_s)

    async def end(self, state: RunState, reason: str) -> Run:
        """Stores the end with its report and returns the run.

        Raises:
            LeaseLost: another worker has the run.
            JobStoreUnavailable: the end could not be stored.
        """
        store, claim = self._parts.store, self._claim
        run = await self._reaching.reach(partial(store.get_run, claim.run.key.tenant, claim.run.run_id))
        report = await self._reporting.report(run, state, reason)
        ended = await self._reaching.reach(partial(store.end_run, claim, state, reason, report))
        if state is RunState.SUCCEEDED:
            self._parts.source.commit()
        return ended
