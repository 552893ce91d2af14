"""Sees to it that somebody carries out the runs that wait: worker processes, started by the server while there are any.

A worker is a process of its own since parsing and hashing would hold up requests, and since its crash must not be
the server's. One that dies is started again, later each time; a run whose worker dies again and again without getting
any further is given up, with a reason. Several servers may share a store: a run is claimed by one worker alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from typing import Protocol, TypeAlias

import structlog

from indexers.errors import JobError, JobStoreUnavailable, LeaseLost
from indexers.jobs.remaining import items_done
from indexers.jobs.state import Run, RunState
from indexers.jobs.store import JobStore
from retrieval.errors import PermissionDenied
from retrieval.jobs.active import active_runs
from retrieval.jobs.names import worker_name

LOOK_S = 2.0
"""Between looks at the store, which runs that come by this server do not wait for."""

MOST_DEATHS = 8
"""Workers of a run that may die one after the other before it is given up."""

_FIRST_PAUSE_S = 1.0
_LONGEST_PAUSE_S = 60.0
_LEASE_S = 5.0

_log = structlog.get_logger("headrace")


class Waited(Protocol):
    """A process that can be waited for."""

    async def wait(self) -> int:
        """Returns its exit code when it has ended."""
        ...


StartWorker: TypeAlias = Callable[[Run], AbstractAsyncContextManager[Waited]]
Pause: TypeAlias = Callable[[float], Awaitable[object]]


class Supervisor:
    """Keeps at most so many workers going as are allowed."""

    def __init__(self, store: JobStore, start: StartWorker, most: int, pause: Pause = asyncio.sleep) -> None:
        """`start` runs a worker for a run while its block runs; `most` 0 starts none."""
        self._store = store
        self._start = start
        self._most = most
        self._pause = pause
        self._places = asyncio.Semaphore(most)
        self._tended: dict[str, asyncio.Task[None]] = {}
        self._woken = asyncio.Event()
        self._name = f"{worker_name()}:supervisor"

    def wake(self) -> None:
        """Says that a run was queued."""
        self._woken.set()

    @property
    def tended(self) -> int:
        """How many runs have a worker, or wait for one."""
        return len(self._tended)

    async def run(self) -> None:
        """Looks for runs until it is cancelled; then the workers are ended."""
        try:
            while self._most:
                self._woken.clear()
                await self._look()
                with suppress(TimeoutError):
                    async with asyncio.timeout(LOOK_S):
                        await self._woken.wait()
        finally:
            tended = list(self._tended.values())
            for task in tended:
                task.cancel()
            await asyncio.gather(*tended, return_exceptions=True)

    async def _look(self) -> None:
        try:
            for run in await active_runs(self._store):
                if run.run_id not in self._tended and await self._is_free(run):
                    task = asyncio.create_task(self._tend(run))
                    self._tended[run.run_id] = task
                    task.add_done_callback(partial(self._forget, run.run_id))
        except JobStoreUnavailable as error:
            _log.warning("job_store_unavailable", reason=error.reason)

    def _forget(self, run_id: str, _: asyncio.Task[None]) -> None:
        self._tended.pop(run_id, None)

    async def _tend(self, run: Run) -> None:
        """Starts workers for one run until it has ended, or somebody else has it."""
        deaths, furthest = 0, -1
        with suppress(JobError):  # the run is gone, or the store: the next look sees what there is
            while not run.state.ended and await self._is_free(run):
                if deaths >= MOST_DEATHS:
                    await self._give_up(run)
                    return
                code = await self._work(run)
                run = await self._store.get_run(run.key.tenant, run.run_id)
                done, _ = items_done(run)
                deaths, furthest = (1, done) if done > furthest else (deaths + 1, furthest)
                if not run.state.ended:
                    _log.warning("worker_ended", run=run.run_id, exit_code=code, deaths=deaths)
                    await self._pause(pause_s(deaths))

    async def _work(self, run: Run) -> int:
        """Runs one worker to its end, and returns its exit code; -1 when it could not be started."""
        async with self._places:
            try:
                async with self._start(run) as worker:
                    return await worker.wait()
            except (OSError, PermissionDenied) as error:
                _log.error("worker_not_started", run=run.run_id, reason=str(error))
                return -1

    async def _is_free(self, run: Run) -> bool:
        """Tells whether nobody carries out the run: it waits, or the claim on it has lapsed."""
        if run.state is RunState.QUEUED:
            return True
        tenant, run_id = run.key.tenant, run.run_id
        claim = await self._store.claim_run(self._name, _LEASE_S, tenant, run_id)
        if claim is None:
            return False
        await self._store.release(self._name)
        return True

    async def _give_up(self, run: Run) -> None:
        claim = await self._store.claim_run(self._name, _LEASE_S, run.key.tenant, run.run_id)
        if claim is not None:
            reason = f"its worker ended {MOST_DEATHS} times without getting any further; look at the server's log"
            with suppress(LeaseLost):
                await self._store.end_run(claim, RunState.FAILED, reason, "")


def pause_s(deaths: int) -> float:
    """Returns how long to wait after so many deaths one after the other: twice as long each time, a minute at most."""
    return float(min(_LONGEST_PAUSE_S, _FIRST_PAUSE_S * 2.0 ** min(deaths - 1, 16)))


@asynccontextmanager
async def looked_after(*works: Awaitable[None]) -> AsyncIterator[Callable[[], None]]:
    """Runs the works while the block runs, and gives what asks them to end before it does."""
    tasks = [asyncio.ensure_future(work) for work in works]
    for task in tasks:
        task.add_done_callback(_tell)

    def end() -> None:
        for task in tasks:
            task.cancel()

    try:
        yield end
    finally:
        end()
        await asyncio.gather(*tasks, return_exceptions=True)


def _tell(task: asyncio.Future[None]) -> None:
    """Says at once when a work ends by an error: the server goes on serving without it."""
    if not task.cancelled() and (error := task.exception()) is not None:
        _log.error("jobs_unattended", exc_info=error)
