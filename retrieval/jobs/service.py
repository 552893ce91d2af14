"""What callers can do with jobs, whichever way they come: declare, run, look, cancel, retry, forget."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from indexers.errors import InvalidJob, JobNotFound, RunActive, RunNotFound
from indexers.jobs.files import parse_job
from indexers.jobs.spec import JobSpec
from indexers.jobs.state import Failure, Job, JobKey, Run, RunRequest
from indexers.jobs.store import JobStore
from indexers.jobs.when import has_schedule, next_time
from indexers.sources.access import SourceAccess
from retrieval.jobs.active import newest_run
from retrieval.jobs.bounds import check_bounds, checked_base
from retrieval.jobs.run_watching import RunWatches


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Submission:
    """A job as it is handed in; an empty text means the job that is declared under the name."""

    spec_toml: str
    name: str = ""
    run: bool = False
    allow_shrink: bool = False
    paused: bool = False
    base_folder: str = ""


@dataclass(frozen=True, slots=True)
class JobView:
    """A job with its newest run, and when its schedule starts it next."""

    job: Job
    last_run: Run | None
    next_run_at: datetime | None


class JobDesk:
    """Takes jobs for all tenants over one store; `access` bounds what submitted jobs may reach."""

    def __init__(
        self,
        store: JobStore,
        access: SourceAccess,
        delete_documents: Callable[[Job], Awaitable[int]],
        submitted: Callable[[], None] = lambda: None,
        *,
        trusted: bool = False,
        now: Callable[[], datetime] = _now,
    ) -> None:
        """`delete_documents` deletes what a job owns; `submitted` is told of every run that is queued.

        `trusted` are callers who own the data folder: their runs read all that they can, but for what a schedule
        starts.
        """
        self._store = store
        self._access = access
        self._delete_documents = delete_documents
        self._submitted = submitted
        self._trusted = trusted
        self._watches = RunWatches(store)
        self.now = now

    def end_watches(self, error: Exception) -> None:
        """Lets all who watch runs go with the error."""
        self._watches.end(error)

    async def submit(self, tenant: str, asked: Submission, by: str) -> tuple[JobView, Run | None]:
        """Declares a job, or declares it anew, and queues a run if asked to; `by` is who asks.

        A schedule that rests goes on resting, until the job is named without a text and without asking for a run.

        Raises:
            InvalidJob: the text is no job, or asks for what it may not reach.
            JobNotFound: there is no text and no job of that name.
            RunActive: a run was asked for and one has not ended.
        """
        if asked.spec_toml:
            key = await self._declare(tenant, asked)
        else:
            key = JobKey(tenant, asked.name)
            job = await self._store.get_job(key)
            if not asked.run and job.paused != asked.paused:
                await self._store.put_job(replace(job, paused=asked.paused))
        run = None
        if asked.run:
            run = await self._submit(key, RunRequest(allow_shrink=asked.allow_shrink, reason=by, trusted=self._trusted))
        return await self.view(key), run

    async def view(self, key: JobKey) -> JobView:
        """Returns a job. Raises: JobNotFound."""
        return await self._view(await self._store.get_job(key))

    async def run_of(self, key: JobKey, run_id: str = "") -> Run:
        """Returns a run of the job, the newest when none is named.

        Raises:
            JobNotFound: there is no such job.
            RunNotFound: the job has no such run, or none at all.
        """
        await self._store.get_job(key)
        if run_id:
            run = await self._store.get_run(key.tenant, run_id)
            if run.key != key:
                raise RunNotFound(run_id)
            return run
        newest = await newest_run(self._store, key)
        if newest is None:
            raise RunNotFound(f"the newest of {key.name}")
        return newest

    async def job_of(self, tenant: str, run_id: str) -> JobKey:
        """Returns the job that a run carries out. Raises: RunNotFound."""
        return (await self._store.get_run(tenant, run_id)).key

    async def jobs(self, tenant: str, after: str, limit: int) -> list[JobView]:
        """Returns the tenant's jobs whose names come after one, by name."""
        jobs = [job for job in await self._store.list_jobs(tenant) if job.key.name > after]
        return [await self._view(job) for job in jobs[:limit]]

    async def runs(self, key: JobKey, before: str, limit: int) -> list[Run]:
        """Returns runs of a job, newest first. Raises: JobNotFound."""
        await self._store.get_job(key)
        return await self._store.list_runs(key.tenant, key.name, limit, before)

    async def watch(self, key: JobKey, run_id: str = "") -> AsyncGenerator[Run, None]:
        """Yields the run whenever it has changed, until its end. Raises as `run_of`."""
        run = await self.run_of(key, run_id)
        async with aclosing(self._watches.watch(key.tenant, run.run_id)) as states:
            async for state in states:
                yield state

    async def cancel(self, key: JobKey, run_id: str = "") -> Run:
        """Asks a run to stop. Raises as `run_of`."""
        run = await self.run_of(key, run_id)
        return await self._store.cancel_run(key.tenant, run.run_id)

    async def retry(self, key: JobKey, by: str) -> Run:
        """Queues a run over what failed. Raises: JobNotFound, RunActive."""
        return await self._submit(key, RunRequest(only_failures=True, reason=by, trusted=self._trusted))

    async def failures(self, key: JobKey, after: str, limit: int) -> tuple[list[Failure], bool]:
        """Returns dead letters, and whether there are more after them. Raises: JobNotFound.

        A page ends with an item, since the next one begins after it; an item that has more failures than fit makes
        the page longer.
        """
        await self._store.get_job(key)
        asked = limit + 1
        while True:
            found = await self._store.failures(key, after, asked)
            if len(found) < asked:
                return found, False
            if page := [one for one in found if one.item_uri != found[-1].item_uri]:
                return page, True
            asked *= 2

    async def remove(self, key: JobKey, *, delete_documents: bool) -> int:
        """Forgets a job; returns how many of its documents were deleted, if asked to.

        The job goes last, so that whoever is interrupted can do it again.

        Raises:
            JobNotFound: there is no such job.
            RunActive: a run has not ended.
        """
        job = await self._store.get_job(key)
        run = await newest_run(self._store, key)
        if run is not None and not run.state.ended:
            raise RunActive(key.name, run.run_id)
        deleted = await self._delete_documents(job) if delete_documents else 0
        await self._store.remove_job(key)
        return deleted

    async def _submit(self, key: JobKey, request: RunRequest) -> Run:
        run = await self._store.submit(key, request)
        self._submitted()
        return run

    async def _declare(self, tenant: str, asked: Submission) -> JobKey:
        spec = await asyncio.to_thread(parse_job, asked.spec_toml, asked.name, "spec_toml")
        if asked.name and asked.name != spec.name:
            raise InvalidJob((f"name: the file says {spec.name!r} and the request {asked.name!r}; leave out one",))
        base = asked.base_folder
        if not self._trusted or has_schedule(spec.schedule):
            base = checked_base(base, self._access)
            check_bounds(spec, base, self._access)
        key = JobKey(tenant, spec.name)
        paused = asked.paused or await self._is_paused(key)
        await self._store.put_job(Job(key, spec, base, self.now(), paused))
        return key

    async def _is_paused(self, key: JobKey) -> bool:
        try:
            return (await self._store.get_job(key)).paused
        except JobNotFound:
            return False

    async def _view(self, job: Job) -> JobView:
        last = await newest_run(self._store, job.key)
        return JobView(job, last, next_run_at(job.spec, last, job.paused, self.now()))


def next_run_at(spec: JobSpec, last: Run | None, paused: bool, now: datetime) -> datetime | None:
    """Returns when the schedule starts the job next; None when it rests, has none, or a run has not ended."""
    if paused or (last is not None and not last.state.ended):
        return None
    return next_time(spec.schedule, last.ended_at if last else None, now)
