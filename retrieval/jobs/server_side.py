"""The part of a server that is about jobs: takes calls, starts workers, keeps schedules, counts."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from indexers.errors import JobStoreUnavailable
from indexers.index import Catalog
from indexers.jobs.state import Job, Run
from indexers.jobs.store import JobStore
from indexers.sources.open import open_source
from indexers.sources.source import Source
from retrieval.errors import ShuttingDown
from retrieval.identity import Authenticator
from retrieval.jobs.active import newest_runs
from retrieval.jobs.bounds import submitted_access
from retrieval.jobs.child import WorkerLaunch, worker_child
from retrieval.jobs.open import open_job_store
from retrieval.jobs.opening import job_folder
from retrieval.jobs.owned_documents import deleting
from retrieval.jobs.scheduling import Scheduler
from retrieval.jobs.service import JobDesk
from retrieval.jobs.supervising import Supervisor, Waited, looked_after
from retrieval.jobs.worker import release_dead
from retrieval.settings import Settings
from retrieval.settings.service import Role
from retrieval.telemetry.jobs import JobCollector

_GRACE_S = 2.0  # for workers to give back what they hold
_log = structlog.get_logger("headrace")
_ROLES: tuple[Role, ...] = ("read", "write")  # `read` to find the collection, `write` for everything else


class _Bell:
    """Tells of queued runs whoever listens by then."""

    def __init__(self) -> None:
        self.ring: Callable[[], None] = lambda: None

    def __call__(self) -> None:
        self.ring()


@dataclass(frozen=True, slots=True)
class ServerJobs:
    """What a server has for jobs."""

    desk: JobDesk
    collector: JobCollector
    store: JobStore
    _settings: Settings
    _bell: _Bell

    @asynccontextmanager
    async def working(
        self, launch: WorkerLaunch | None, authenticator: Authenticator, address: str
    ) -> AsyncIterator[Callable[[], None]]:
        """Starts workers and keeps schedules while the block runs; gives what asks them to end before it does.

        Without a `launch` no workers are started.
        """
        most = self._settings.jobs.workers if launch is not None else 0
        try:
            await release_dead(self.store)
        except JobStoreUnavailable as error:  # questions are answered all the same, and leases end by themselves
            _log.warning("job_store_unavailable", reason=error.reason)

        @asynccontextmanager
        async def start(run: Run) -> AsyncIterator[Waited]:
            assert launch is not None
            name = f"worker of {run.key.name}"[:64]
            with authenticator.lent(run.key.tenant, _ROLES, name) as key:
                async with worker_child(launch, run, address, key, _GRACE_S) as process:
                    yield process

        supervisor = Supervisor(self.store, start, most)
        scheduler = Scheduler(self.store, self._open_watched, self._bell)
        self._bell.ring = supervisor.wake
        works = supervisor.run(), scheduler.run(), self.collector.follow(self._newest_runs)
        async with looked_after(*works) as end:

            def stop() -> None:
                end()
                self.desk.end_watches(ShuttingDown())

            yield stop

    async def _newest_runs(self) -> list[Run]:
        return [run for _, run in await newest_runs(self.store) if run is not None]

    def _open_watched(self, job: Job) -> Source:
        folder = job_folder(self._settings, job.key) / "watched"
        folder.mkdir(parents=True, exist_ok=True)
        access = submitted_access(self._settings.jobs)
        return open_source(job.spec.source, Path(job.base_folder or "."), access, folder)


@asynccontextmanager
async def server_jobs(settings: Settings, catalog: Catalog) -> AsyncIterator[ServerJobs]:
    """Opens the store of jobs and closes it.

    Raises:
        JobStoreUnavailable: it cannot be opened.
    """
    store = open_job_store(settings)
    try:
        bell = _Bell()
        desk = JobDesk(store, submitted_access(settings.jobs), deleting(catalog), bell)
        yield ServerJobs(desk, JobCollector(), store, settings, bell)
    finally:
        await store.close()
