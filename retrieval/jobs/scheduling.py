"""Starts runs by themselves: at the times of `cron`, some time after the last run, and when a source has changed.

A slot, a moment at which a job is due, starts one run, even where several servers share a store: the slot is the run's
reason and is remembered with the job, and a job has one run at a time. A slot that nobody was there for is made up for
once.

Watching happens in a thread of the server, which waits for the operating system to tell of a change and does nothing
else: a process for each watched folder would cost a hundred megabytes to do the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import UTC, datetime
from typing import TypeAlias

import structlog

from indexers.errors import JobError, JobNotFound, JobStoreUnavailable, RunActive, SourceError
from indexers.jobs.state import Job, JobKey, Run, RunRequest
from indexers.jobs.store import JobStore
from indexers.jobs.when import has_schedule, next_time
from indexers.sources.source import Source, Watched
from retrieval.jobs.active import newest_run

TICK_S = 1.0
SLOT = "schedule.slot"
"""The name under which the last slot of a job is remembered."""

_WAIT_S = 2.0  # a thread that waits cannot be interrupted, so it waits for short
_AFTER_FAULT_S = 30.0

OpenSource: TypeAlias = Callable[[Job], Source]
_log = structlog.get_logger("headrace")


def _now() -> datetime:
    return datetime.now(UTC)


class Scheduler:
    """Queues the runs that are due."""

    def __init__(
        self,
        store: JobStore,
        open_source: OpenSource,
        submitted: Callable[[], None] = lambda: None,
        *,
        now: Callable[[], datetime] = _now,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        """`open_source` opens what a job watches; `submitted` is told of every run that is queued."""
        self._store = store
        self._open_source = open_source
        self._submitted = submitted
        self._now = now
        self._pause = pause
        self._watches: dict[JobKey, tuple[Job, asyncio.Task[None]]] = {}

    async def run(self) -> None:
        """Looks at the clock once a second until it is cancelled."""
        try:
            while True:
                try:
                    await self.tick()
                except JobStoreUnavailable as error:
                    _log.warning("job_store_unavailable", reason=error.reason)
                await self._pause(TICK_S)
        finally:
            await self._watch_only({})

    async def tick(self) -> None:
        """Queues every run that is due now, and watches the sources that are to be watched.

        Raises:
            JobStoreUnavailable: the store cannot be asked.
        """
        watched: dict[JobKey, Job] = {}
        for job in await self._store.list_jobs():
            if job.paused or not has_schedule(job.spec.schedule):
                continue
            if job.spec.schedule.watch:
                watched[job.key] = job
            last = await newest_run(self._store, job.key)
            if last is None or last.state.ended:
                await self._start_if_due(job, last)
        await self._watch_only(watched)

    async def _start_if_due(self, job: Job, last: Run | None) -> None:
        slots = await self._store.recall(job.key, [SLOT])
        try:
            slot = _slot_of(job, last, slots.get(SLOT, b"").decode())
        except ValueError as error:
            _log.error("schedule_not_kept", job=job.key.name, reason=str(error))
            return
        if slot is None or slot > self._now():
            return
        reason = f"the schedule, due {slot.isoformat()}"
        if last is None or last.request.reason != reason:
            await self._submit(job.key, reason)
        await self._store.remember(job.key, SLOT, slot.isoformat().encode())

    async def _submit(self, key: JobKey, reason: str) -> bool:
        try:
            await self._store.submit(key, RunRequest(reason=reason))
        except RunActive:
            return False  # another server was faster
        except JobNotFound:
            return True  # it was removed just now
        self._submitted()
        return True

    async def _watch_only(self, wanted: dict[JobKey, Job]) -> None:
        ended = [task for key, (job, task) in self._watches.items() if wanted.get(key) != job]
        for task in ended:
            task.cancel()
        await asyncio.gather(*ended, return_exceptions=True)
        self._watches = {key: one for key, one in self._watches.items() if wanted.get(key) == one[0]}
        for key, job in wanted.items():
            if key not in self._watches:
                self._watches[key] = (job, asyncio.create_task(self._watch(job)))

    async def _watch(self, job: Job) -> None:
        """Queues a run now, since nobody knows what changed before, and one after each change."""
        while True:
            try:
                source = await asyncio.to_thread(self._open_source, job)
            except SourceError as error:
                _log.warning("source_not_watched", job=job.key.name, reason=error.reason)
                await self._pause(_AFTER_FAULT_S)
                continue
            try:
                await self._follow(job, source)
            except SourceError as error:
                _log.warning("source_not_watched", job=job.key.name, reason=error.reason)
            finally:
                await asyncio.to_thread(source.close)
            await self._pause(_AFTER_FAULT_S)

    async def _follow(self, job: Job, source: Source) -> None:
        if not isinstance(source, Watched):
            _log.warning("source_not_watched", job=job.key.name, reason="this kind of source tells of no changes")
            return
        await asyncio.to_thread(source.wait, 0.0)  # from here on changes are noticed
        changed = True
        while True:
            if changed:
                with suppress(JobError):
                    changed = not await self._submit(job.key, "a change of the source")
            # Who has to submit again waits for the run before, which may have read the source too early.
            changed = await asyncio.to_thread(source.wait, _WAIT_S) or changed


def _slot_of(job: Job, last: Run | None, remembered: str) -> datetime | None:
    """Returns the first moment at which the job is due after what was done so far."""
    ended = last.ended_at if last else None
    slots = [datetime.fromisoformat(remembered)] if remembered else []
    since = max([job.updated_at, *slots, *([last.created_at] if last else [])])
    return next_time(job.spec.schedule, ended, since)
