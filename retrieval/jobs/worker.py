"""The worker: takes runs from the queue and carries them out, one at a time, until it is told to stop.

Whatever stops it, a signal, a crash or a pulled plug, the run and its items go to another worker, and what was written
by then is found unchanged. That is why nothing here tries to tidy up beyond giving leases back.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace

import structlog

from indexers.errors import IndexerError, JobStoreUnavailable, LeaseLost, RunActive
from indexers.jobs.running.assisting import Assistant
from indexers.jobs.running.runner import JobRunner
from indexers.jobs.state import Job, Run, RunClaim, RunRequest, RunState
from indexers.jobs.store import JobStore
from retrieval.jobs.names import is_dead, worker_name
from retrieval.jobs.open import open_job_store
from retrieval.jobs.opening import Surroundings, run_parts

_LOOK_S = 1.0  # between looks at a queue without work
_WATCH_S = 0.5
_ASSISTED = frozenset({"folder", "files"})  # sources whose items any process of the machine can open by name

_log = structlog.get_logger()


class Worker:
    """Carries out runs of one store."""

    def __init__(self, here: Surroundings, store: JobStore) -> None:
        self._here = here
        self._store = store
        self.name = worker_name()
        self._lease_s = here.settings.jobs.lease_s

    async def work(self, stop: asyncio.Event, *, once: bool = False, run_id: str = "", tenant: str = "") -> None:
        """Works until `stop` is set, or with `once` until nothing is left to do.

        Raises:
            JobStoreUnavailable: the store cannot be reached; without `once` it is waited for.
        """
        said = ""
        while not stop.is_set():
            try:
                worked = await self._work_once(stop, run_id, tenant)
                said = ""
            except JobStoreUnavailable as error:
                if once:
                    raise
                if error.reason != said:
                    _log.warning("job_store_unavailable", reason=error.reason)
                worked, said = False, error.reason
            if not worked:
                if once:
                    return
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK_S):
                        await stop.wait()

    async def carry_out(self, claim: RunClaim) -> Run:
        """Carries out a claimed run, and ends it as FAILED when it cannot even begin.

        Raises:
            LeaseLost: another worker has the run.
        """
        try:
            async with run_parts(self._here, self._store, claim.run, self.name) as parts:
                return await JobRunner(parts, claim).run()
        except (LeaseLost, JobStoreUnavailable):
            raise
        except IndexerError as error:
            return await self._store.end_run(claim, RunState.FAILED, str(error), "")
        except Exception as error:
            number = secrets.token_hex(4)
            _log.exception("run_failed", run=claim.run.run_id, error_id=number)
            reason = f"an unexpected {type(error).__name__}; the log of the worker has it as {number}"
            return await self._store.end_run(claim, RunState.FAILED, reason, "")

    async def _work_once(self, stop: asyncio.Event, run_id: str, tenant: str) -> bool:
        """Carries out a run that waits, or helps with one; False when there is none."""
        await release_dead(self._store)
        claim = await self._claim(tenant, run_id)
        if claim is not None:
            await self._until(stop, self.carry_out(claim))
            return True
        run = await self._run_to_assist(tenant, run_id)
        if run is not None:
            await self._until(stop, self._assist(run))
        return run is not None

    async def _claim(self, tenant: str, run_id: str) -> RunClaim | None:
        """Takes a run, if there is a way to its collection."""
        if self._here.address() is None and not self._here.opens:
            return None
        return await self._store.claim_run(self.name, self._lease_s, tenant or self._here.tenant, run_id)

    async def _assist(self, run: Run) -> None:
        async with run_parts(self._here, self._store, run, self.name) as parts:
            await Assistant(parts, run).run()

    async def _run_to_assist(self, tenant: str, run_id: str) -> Run | None:
        if self._here.address() is None:
            return None  # whoever leads the run holds the data folder
        for run in await self._store.list_runs(tenant or self._here.tenant):
            wanted = run_id in ("", run.run_id) and run.state is RunState.RUNNING
            if wanted and run.spec.source.kind in _ASSISTED and run.items and run.worker != self.name:
                due_s = await self._store.next_due_s(run.run_id)
                if due_s == 0.0:
                    return run
        return None

    async def _until(self, stop: asyncio.Event, work: Coroutine[None, None, object]) -> None:
        """Does the work, or drops it when the worker is to stop; either way nothing stays leased."""
        working, stopping = asyncio.create_task(work), asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({working, stopping}, return_when=asyncio.FIRST_COMPLETED)
            working.cancel()
            await working
        except asyncio.CancelledError:
            if not stop.is_set():
                raise
        except LeaseLost as error:
            _log.warning("lease_lost", reason=str(error))
        except ExceptionGroup as group:
            _log.warning("assistance_ended", reasons=[str(one) for one in group.exceptions])
        finally:
            stopping.cancel()
            working.cancel()
            await self._store.release(self.name)


async def release_dead(store: JobStore) -> None:
    """Gives back at once what workers of this machine held that have ended without a word."""
    for holder in await store.holders():
        if is_dead(holder):
            await store.release(holder, died=True)


async def work(
    here: Surroundings, stop: asyncio.Event, *, once: bool = False, run_id: str = "", tenant: str = ""
) -> None:
    """Is `headrace worker`: works on the queue until `stop` is set, or with `once` until nothing is left to do."""
    store = open_job_store(here.settings)
    try:
        await Worker(here, store).work(stop, once=once, run_id=run_id, tenant=tenant)
    finally:
        await store.close()


async def run_here(here: Surroundings, job: Job, request: RunRequest, watcher: Callable[[Run], None]) -> Run:
    """Is `headrace jobs run`: declares the job, and carries out a run of it in this process to its end.

    `watcher` is told of the run twice a second. A cancelled caller cancels the run.

    Raises:
        RunActive: a worker that lives carries out a run of the job.
        JobStoreUnavailable: the store cannot be reached.
    """
    here = replace(here, foreground=True)
    store = open_job_store(here.settings)
    try:
        await release_dead(store)
        await store.put_job(job)
        run = await _submitted(store, job, request)
        worker = Worker(here, store)
        claim = await store.claim_run(worker.name, here.settings.jobs.lease_s, job.key.tenant, run.run_id)
        if claim is None:
            raise RunActive(job.key.name, run.run_id)
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(_watch(store, run, watcher))
            ended = await _carried_out(worker, store, claim)
            watching.cancel()
        watcher(ended)
        return ended
    finally:
        await store.close()


async def _submitted(store: JobStore, job: Job, request: RunRequest) -> Run:
    """Queues a run; one that nobody carries out, since its worker has ended, is taken up where it stands."""
    try:
        return await store.submit(job.key, request)
    except RunActive as active:
        run = await store.get_run(job.key.tenant, active.run_id)
        if run.worker:
            raise
        return run


async def _carried_out(worker: Worker, store: JobStore, claim: RunClaim) -> Run:
    """Carries out the run; when the caller is cancelled, the run is ended as cancelled first."""
    working = asyncio.create_task(worker.carry_out(claim))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        await store.cancel_run(claim.run.key.tenant, claim.run.run_id)
        await working
        raise


async def _watch(store: JobStore, run: Run, watcher: Callable[[Run], None]) -> None:
    while True:
        with suppress(JobStoreUnavailable):
            watcher(await store.get_run(run.key.tenant, run.run_id))
        await asyncio.sleep(_WATCH_S)
