"""The newest run of each job: the only one of it that may not have ended."""

from __future__ import annotations

from indexers.jobs.state import Job, JobKey, Run
from indexers.jobs.store import JobStore


async def newest_runs(store: JobStore) -> list[tuple[Job, Run | None]]:
    """Returns all tenants' jobs, each with its newest run.

    Raises:
        JobStoreUnavailable: the store cannot be asked.
    """
    return [(job, await newest_run(store, job.key)) for job in await store.list_jobs()]


async def newest_run(store: JobStore, key: JobKey) -> Run | None:
    """Returns a job's newest run; None when it was never run. Raises: JobStoreUnavailable."""
    runs = await store.list_runs(key.tenant, key.name, limit=1)
    return runs[0] if runs else None


async def active_runs(store: JobStore) -> list[Run]:
    """Returns the runs that have not ended, oldest first. Raises: JobStoreUnavailable."""
    runs = [run for _, run in await newest_runs(store) if run is not None and not run.state.ended]
    return sorted(runs, key=lambda run: (run.created_at, run.run_id))
