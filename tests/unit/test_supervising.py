"""Supervision: one worker a run, again when it dies, never for nothing, ended for certain."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from indexers.jobs.state import JobKey, Run, RunClaim, RunRequest, RunState
from retrieval.jobs.child import WorkerLaunch, worker_child
from retrieval.jobs.supervising import MOST_DEATHS, Supervisor, Waited, looked_after, pause_s
from tests.fakes.job_store import MemoryJobStore
from tests.fakes.jobs import declared

KEY = JobKey("acme", "handbook")
PATIENCE_S = 20.0


class _Worker:
    """A worker that does what the test says."""

    def __init__(self, work: Coroutine[Any, Any, int]) -> None:
        self._work = work

    async def wait(self) -> int:
        return await self._work


class _Workers:
    """Starts workers, and knows how many run."""

    def __init__(self, work: Callable[[Run], Coroutine[Any, Any, int]]) -> None:
        self._work = work
        self.started: list[str] = []
        self.running = 0
        self.most = 0

    @asynccontextmanager
    async def start(self, run: Run) -> AsyncIterator[Waited]:
        self.started.append(run.run_id)
        self.running += 1
        self.most = max(self.most, self.running)
        try:
            yield _Worker(self._work(run))
        finally:
            self.running -= 1


async def _no_pause(_: float) -> None:
    await asyncio.sleep(0)


async def _succeed(store: MemoryJobStore, run: Run) -> int:
    claim = await store.claim_run("w", 60.0, run_id=run.run_id)
    assert claim is not None
    await store.end_run(claim, RunState.SUCCEEDED, "", "")
    return 0


async def _ended(store: MemoryJobStore, count: int) -> list[Run]:
    """Waits until so many runs have ended."""
    async with asyncio.timeout(PATIENCE_S):
        while len(ended := [run for run in await store.list_runs("") if run.state.ended]) < count:
            await asyncio.sleep(0)
    return ended


async def test_supervisor_starts_a_worker_for_each_run_but_never_too_many() -> None:
    """Runs wait for a place; each gets one worker."""
    store = MemoryJobStore()
    for name in ("a", "b", "c", "d", "e"):
        await store.submit((await declared(store, name)).key, RunRequest())
    workers = _Workers(lambda run: _succeed(store, run))
    async with looked_after(Supervisor(store, workers.start, 2, _no_pause).run()):
        await _ended(store, 5)
    assert sorted(workers.started) == sorted(run.run_id for run in await store.list_runs(""))
    assert workers.most <= 2
    assert workers.running == 0


async def test_supervisor_starts_a_worker_again_when_it_dies() -> None:
    """A crash is no end: the next worker goes on once the claim of the dead one has lapsed."""
    store = MemoryJobStore()
    deaths: list[RunClaim | None] = []
    await store.submit((await declared(store)).key, RunRequest())

    async def work(run: Run) -> int:
        if len(deaths) < 3:
            deaths.append(await store.claim_run("dead", 1.0, run_id=run.run_id))
            store.pass_s(2.0)
            return -9
        return await _succeed(store, run)

    workers = _Workers(work)
    async with looked_after(Supervisor(store, workers.start, 1, _no_pause).run()):
        [run] = await _ended(store, 1)
    assert run.state is RunState.SUCCEEDED
    assert len(workers.started) == 4


async def test_supervisor_gives_up_a_run_that_kills_its_workers() -> None:
    """A run whose worker dies each time without getting any further ends as FAILED and says so."""
    store = MemoryJobStore()
    await store.submit((await declared(store)).key, RunRequest())

    async def die(run: Run) -> int:
        await store.claim_run("dead", 1.0, run_id=run.run_id)
        store.pass_s(2.0)
        return 1

    workers = _Workers(die)
    async with looked_after(Supervisor(store, workers.start, 1, _no_pause).run()):
        [run] = await _ended(store, 1)
    assert run.state is RunState.FAILED
    assert f"ended {MOST_DEATHS} times" in run.reason
    assert len(workers.started) == MOST_DEATHS


async def test_supervisor_leaves_a_run_to_whoever_has_it() -> None:
    """A run that a worker elsewhere carries out gets no second one, and a lapsed claim does."""
    store = MemoryJobStore()
    await store.submit((await declared(store)).key, RunRequest())
    await store.claim_run("elsewhere", 60.0)
    workers = _Workers(lambda run: _succeed(store, run))
    supervisor = Supervisor(store, workers.start, 1, _no_pause)
    async with looked_after(supervisor.run()):
        for _ in range(20):
            supervisor.wake()
            await asyncio.sleep(0)
        assert not workers.started
        store.moment += timedelta(seconds=120)
        supervisor.wake()
        await _ended(store, 1)
    assert len(workers.started) == 1


async def test_supervisor_ends_its_workers_with_itself() -> None:
    """No worker outlives the supervision."""
    store, begun = MemoryJobStore(), asyncio.Event()
    await store.submit((await declared(store)).key, RunRequest())

    async def forever(run: Run) -> int:
        begun.set()
        never: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        return await never

    workers = _Workers(forever)
    async with looked_after(Supervisor(store, workers.start, 1).run()), asyncio.timeout(PATIENCE_S):
        await begun.wait()
        assert workers.running == 1
    assert workers.running == 0


async def test_supervisor_without_places_starts_nothing() -> None:
    """`jobs.workers = 0` leaves the queue to `headrace worker`."""
    store = MemoryJobStore()
    await store.submit((await declared(store)).key, RunRequest())
    workers = _Workers(lambda run: _succeed(store, run))
    await Supervisor(store, workers.start, 0).run()
    assert not workers.started


def test_pause_grows_to_a_minute() -> None:
    """The more workers have died, the longer the pause, up to a bound."""
    assert [pause_s(deaths) for deaths in (1, 2, 3, 8, 100)] == [1.0, 2.0, 4.0, 60.0, 60.0]


async def _a_run(store: MemoryJobStore) -> Run:
    await declared(store)
    return await store.submit(KEY, RunRequest())


def _python(script: str) -> tuple[str, ...]:
    return (sys.executable, "-c", script)


async def test_worker_child_gets_its_credential_in_the_environment_alone(tmp_path: Path) -> None:
    """Everybody can list the arguments of processes, so the key is not among them."""
    told = tmp_path / "told"
    script = (
        "import os, sys, pathlib; pathlib.Path(os.environ['TOLD']).write_text("
        "'\\n'.join([os.environ['HEADRACE_SERVER'], os.environ['HEADRACE_API_KEY'], *sys.argv[1:]]))"
    )
    run = await _a_run(MemoryJobStore())
    launch = WorkerLaunch(_python(script), {**os.environ, "TOLD": str(told)})
    async with worker_child(launch, run, "127.0.0.1:1", "hr_secret", 5.0) as process:
        assert await process.wait() == 0
    expected = ["127.0.0.1:1", "hr_secret", "--once", "--attached", "--run", run.run_id, "--tenant", "acme"]
    assert told.read_text().splitlines() == expected
    assert "hr_secret" not in repr(launch)


@pytest.mark.parametrize("stubborn", [False, True])
async def test_worker_child_is_ended_for_certain(tmp_path: Path, stubborn: bool) -> None:
    """A worker is asked to end; one that does not is killed after the grace."""
    ready = tmp_path / "ready"
    ignore = "signal.signal(signal.SIGTERM, signal.SIG_IGN); " if stubborn else ""
    script = f"import os, signal, sys; {ignore}os.close(os.open({str(ready)!r}, os.O_CREAT)); sys.stdin.read()"
    run = await _a_run(MemoryJobStore())
    async with worker_child(WorkerLaunch(_python(script), os.environ), run, "a", "k", 0.2) as process:
        async with asyncio.timeout(PATIENCE_S):
            while not ready.exists():
                await asyncio.sleep(0.01)
    assert process.returncode == (-signal.SIGKILL if stubborn else -signal.SIGTERM)
