"""Schedules: each slot starts one run, a missed one is made up for once, changes start runs."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from datetime import timedelta

from indexers.errors import SourceUnavailable
from indexers.jobs.state import Job, JobKey, Run, RunState
from indexers.parsing.options import SourceFile
from indexers.sources.source import ItemRef, Scanned, Source
from retrieval.jobs.scheduling import SLOT, Scheduler
from retrieval.jobs.supervising import looked_after
from tests.fakes.job_store import EPOCH, MemoryJobStore
from tests.fakes.jobs import FOLDER_JOB, declared

KEY = JobKey("acme", "handbook")
EVERY_MINUTE = FOLDER_JOB + "[schedule]\nevery_s = 60.0\n"
WATCHED = FOLDER_JOB + "[schedule]\nwatch = true\n"
PATIENCE_S = 20.0


def _opens_nothing(job: Job) -> Source:
    raise AssertionError(job)


def _scheduler(store: MemoryJobStore) -> Scheduler:
    return Scheduler(store, _opens_nothing, now=lambda: store.moment)


async def _end(store: MemoryJobStore) -> None:
    claim = await store.claim_run("w", 60.0)
    assert claim is not None
    await store.end_run(claim, RunState.SUCCEEDED, "", "")


async def _runs(store: MemoryJobStore) -> list[Run]:
    return await store.list_runs("acme", "handbook")


async def test_every_starts_a_run_some_time_after_the_last_one_has_ended() -> None:
    """The first run starts at once, each later one after the pause, and never two at a time."""
    store = MemoryJobStore()
    await declared(store, text=EVERY_MINUTE)
    scheduler = _scheduler(store)
    await scheduler.tick()
    assert len(await _runs(store)) == 1
    store.pass_s(600)
    await scheduler.tick()  # it still runs
    await _end(store)
    await scheduler.tick()
    store.pass_s(59)
    await scheduler.tick()
    assert len(await _runs(store)) == 1
    store.pass_s(1)
    await scheduler.tick()
    [run, _] = await _runs(store)
    assert run.request.reason.startswith("the schedule, due ")


async def test_a_missed_slot_is_made_up_for_once() -> None:
    """After a night without a server one run starts, not a hundred."""
    store = MemoryJobStore()
    await declared(store, text=EVERY_MINUTE)
    await _scheduler(store).tick()
    await _end(store)
    store.pass_s(8 * 3600)
    for _ in range(3):
        await _scheduler(store).tick()
    assert len(await _runs(store)) == 2


async def test_servers_that_share_a_store_start_one_run_a_slot() -> None:
    """Whichever server is first, the others see that the slot was kept."""
    store = MemoryJobStore()
    await declared(store, text=EVERY_MINUTE)
    servers = [_scheduler(store) for _ in range(4)]
    for _ in range(3):
        await asyncio.gather(*(server.tick() for server in servers))
        await _end(store)
        await asyncio.gather(*(server.tick() for server in servers))
        store.pass_s(61)
    assert len(await _runs(store)) == 3


async def test_a_schedule_that_rests_starts_nothing() -> None:
    """Neither does a job without a schedule."""
    store = MemoryJobStore()
    await declared(store, "plain")
    job = await declared(store, text=EVERY_MINUTE)
    await store.put_job(Job(job.key, job.spec, job.base_folder, EPOCH, paused=True))
    store.pass_s(3600)
    await _scheduler(store).tick()
    assert not await store.list_runs("acme")


class _Changing:
    """A source that tells of changes when the test says so."""

    complete = True

    def __init__(self) -> None:
        self.changed = threading.Event()
        self.closed = threading.Event()

    def scan(self) -> Iterator[Scanned]:
        raise AssertionError

    def open(self, ref: ItemRef) -> AbstractContextManager[SourceFile]:
        raise AssertionError(ref)

    def commit(self) -> None:
        pass

    def close(self) -> None:
        self.closed.set()

    def wait(self, timeout_s: float) -> bool:
        changed = self.changed.wait(min(timeout_s, 0.01))
        self.changed.clear()
        return changed


async def _until_run(store: MemoryJobStore, count: int) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while len(await _runs(store)) < count:
            await asyncio.sleep(0)


async def test_watch_starts_a_run_at_once_and_after_each_change() -> None:
    """What changed while nobody watched is found by the first run; a change during a run starts another one."""
    store, source = MemoryJobStore(), _Changing()
    await declared(store, text=WATCHED)
    submitted: list[int] = []
    scheduler = Scheduler(store, lambda _: source, lambda: submitted.append(1), now=lambda: store.moment)
    async with looked_after(scheduler.run()):
        await _until_run(store, 1)
        source.changed.set()  # while the first run goes on
        await _end(store)
        await _until_run(store, 2)
        await _end(store)
        source.changed.set()
        await _until_run(store, 3)
    assert source.closed.is_set()
    assert len(submitted) == 3


async def test_watch_ends_when_the_schedule_rests() -> None:
    """A watched source is closed as soon as nobody asks for it any more."""
    store, source = MemoryJobStore(), _Changing()
    job = await declared(store, text=WATCHED)
    scheduler = Scheduler(store, lambda _: source, now=lambda: store.moment)
    await scheduler.tick()
    await _until_run(store, 1)
    await store.put_job(Job(job.key, job.spec, job.base_folder, EPOCH + timedelta(1), paused=True))
    await scheduler.tick()
    assert source.closed.is_set()


async def test_watch_of_a_source_that_cannot_be_opened_is_tried_again() -> None:
    """A folder that is not there yet is watched when it is."""
    store, source, tries = MemoryJobStore(), _Changing(), []
    await declared(store, text=WATCHED)

    def open_source(job: Job) -> Source:
        tries.append(job)
        if len(tries) < 3:
            raise SourceUnavailable("docs", "is not there")
        return source

    async def pause(_: float) -> None:
        await asyncio.sleep(0)

    async with looked_after(Scheduler(store, open_source, now=lambda: store.moment, pause=pause).run()):
        await _until_run(store, 1)
    assert len(tries) == 3


async def test_a_schedule_that_cannot_be_kept_does_not_stop_the_others() -> None:
    """One bad schedule is written to the log, and the next job runs."""

    class Forgetful(MemoryJobStore):
        async def recall(self, key: JobKey, names: Sequence[str]) -> dict[str, bytes]:
            return {SLOT: b"yesterday"} if key.name == "bad" else await super().recall(key, names)

    store = Forgetful()
    await declared(store, "bad", EVERY_MINUTE)
    await declared(store, text=EVERY_MINUTE)
    await _scheduler(store).tick()
    assert [run.key.name for run in await store.list_runs("acme")] == ["handbook"]
