"""A JobStore in memory, with a clock that tests move."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from indexers.errors import JobNotFound, RunActive, RunNotFound
from indexers.jobs.state import (
    ItemState,
    Job,
    JobKey,
    Run,
    RunClaim,
    RunRequest,
    RunState,
)
from tests.fakes.job_store_items import ENDED_ITEMS, EPOCH, Kept, MemoryItems

__all__ = ["EPOCH", "MemoryJobStore"]


class MemoryJobStore(MemoryItems):
    """Everything in dictionaries; nothing outlives the process."""

    async def put_job(self, job: Job) -> None:
        """Declares a job."""
        self._jobs[job.key] = job

    async def get_job(self, key: JobKey) -> Job:
        """Returns a job."""
        if key not in self._jobs:
            raise JobNotFound(key.name)
        return self._jobs[key]

    async def list_jobs(self, tenant: str = "") -> list[Job]:
        """Returns jobs by name."""
        return [self._jobs[key] for key in sorted(self._jobs) if tenant in {"", key.tenant}]

    async def remove_job(self, key: JobKey) -> None:
        """Forgets a job and its runs."""
        await self.get_job(key)
        self._refuse_active(key)
        del self._jobs[key]
        self._runs = {run_id: kept for run_id, kept in self._runs.items() if kept.run.key != key}
        self._dead.pop(key, None)
        self._values.pop(key, None)

    async def submit(self, key: JobKey, request: RunRequest) -> Run:
        """Queues a run."""
        job = await self.get_job(key)
        self._refuse_active(key)
        run_id = f"run-{next(self._numbers):08d}"
        run = Run(run_id, key, job.spec, job.base_folder, request, RunState.QUEUED, self._now())
        self._runs[run_id] = Kept(run)
        return self._view(self._runs[run_id])

    async def get_run(self, tenant: str, run_id: str) -> Run:
        """Returns a run."""
        self.reads += 1
        return self._view(self._own(tenant, run_id))

    async def list_runs(self, tenant: str, job: str = "", limit: int = 100, before: str = "") -> list[Run]:
        """Returns runs, newest first."""
        found = [
            self._view(kept)
            for run_id, kept in sorted(self._runs.items(), reverse=True)
            if tenant in {"", kept.run.key.tenant}
            and job in {"", kept.run.key.name}
            and (not before or run_id < before)
        ]
        return found[:limit]

    async def claim_run(self, worker: str, lease_s: float, tenant: str = "", run_id: str = "") -> RunClaim | None:
        """Claims the oldest run that is free."""
        now = self._now()
        for key, kept in sorted(self._runs.items()):
            run = kept.run
            if tenant not in {"", run.key.tenant} or run_id not in {"", key} or run.state.ended:
                continue
            if run.state is RunState.RUNNING and kept.until > now:
                continue
            kept.fence += 1
            kept.until = now + timedelta(seconds=lease_s)
            started = run.started_at or now
            kept.run = replace(run, state=RunState.RUNNING, worker=worker, started_at=started)
            return RunClaim(self._view(kept), worker, kept.fence)
        return None

    async def renew_run(self, claim: RunClaim, lease_s: float) -> Run:
        """Prolongs a claim."""
        kept = self._claimed(claim)
        kept.until = self._now() + timedelta(seconds=lease_s)
        return self._view(kept)

    async def mark_scanned(self, claim: RunClaim) -> None:
        """Notes that the scan is through."""
        kept = self._claimed(claim)
        kept.run = replace(kept.run, scanned=True)

    async def end_run(self, claim: RunClaim, state: RunState, reason: str, report: str) -> Run:
        """Ends a run."""
        kept = self._claimed(claim)
        self._end(kept, state, reason, report)
        return self._view(kept)

    async def cancel_run(self, tenant: str, run_id: str) -> Run:
        """Asks a run to stop."""
        kept = self._own(tenant, run_id)
        if not kept.run.state.ended:
            kept.run = replace(kept.run, cancel_requested=True)
        if kept.run.state in {RunState.QUEUED, RunState.WAITING}:
            kept.run = replace(kept.run, cancel_requested=True)
            self._end(kept, RunState.CANCELLED, "it was cancelled before a worker took it", "")
        return self._view(kept)

    async def release(self, worker: str, *, died: bool = False) -> None:
        """Gives back what a worker holds."""
        for kept in self._runs.values():
            if kept.run.worker == worker and kept.run.state is RunState.RUNNING:
                kept.until = self._now()
            for item in kept.items.values():
                if item.worker == worker and item.state is ItemState.LEASED:
                    item.until = self._now()

    async def holders(self) -> set[str]:
        """Returns workers that hold something."""
        runs = {kept.run.worker for kept in self._runs.values() if kept.run.state is RunState.RUNNING}
        items = {
            item.worker
            for kept in self._runs.values()
            for item in kept.items.values()
            if item.state is ItemState.LEASED
        }
        return runs | items

    async def prune(self, key: JobKey, keep_runs: int) -> None:
        """Forgets old runs' items and documents."""
        for kept in [kept for _, kept in sorted(self._runs.items(), reverse=True) if kept.run.key == key][keep_runs:]:
            kept.run = self._view(kept)
            kept.items, kept.documents = {}, {}

    async def close(self) -> None:
        """Does nothing."""

    def _refuse_active(self, key: JobKey) -> None:
        for run_id, kept in self._runs.items():
            if kept.run.key == key and not kept.run.state.ended:
                raise RunActive(key.name, run_id)

    def _own(self, tenant: str, run_id: str) -> Kept:
        kept = self._runs.get(run_id)
        if kept is None or kept.run.key.tenant != tenant:
            raise RunNotFound(run_id)
        return kept

    def _end(self, kept: Kept, state: RunState, reason: str, report: str) -> None:
        kept.items = {uri: item for uri, item in kept.items.items() if item.state in ENDED_ITEMS}
        kept.run = replace(kept.run, state=state, reason=reason, report=report, ended_at=self._now())
