"""Watching runs: told of changes, one poll for all watchers, nothing left when they leave."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import pytest

from indexers.errors import JobStoreUnavailable, RunNotFound
from indexers.jobs.state import JobKey, Run, RunRequest, RunState
from retrieval.errors import ShuttingDown
from retrieval.jobs.run_watching import RunWatches
from tests.fakes.job_store import MemoryJobStore
from tests.fakes.jobs import declared


class _Beat:
    """A pause that lasts until the test lets it end."""

    def __init__(self) -> None:
        self._pauses: asyncio.Queue[asyncio.Future[None]] = asyncio.Queue()

    async def __call__(self, seconds: float) -> None:
        assert seconds == 0.5
        pause: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        await self._pauses.put(pause)
        await pause

    async def begun(self) -> asyncio.Future[None]:
        """Waits until a poll is over and the pause after it begins."""
        return await self._pauses.get()


async def _run(store: MemoryJobStore) -> Run:
    await declared(store)
    return await store.submit(JobKey("acme", "handbook"), RunRequest())


async def test_watch_tells_each_change_until_the_end() -> None:
    """A watcher sees the run as it is, then every change that is polled, and is let go at its end."""
    store, beat = MemoryJobStore(), _Beat()
    run, watches = await _run(store), RunWatches(store, beat)
    seen: list[RunState] = []

    async def watch() -> None:
        seen.extend([state.state async for state in watches.watch("acme", run.run_id)])

    watching = asyncio.create_task(watch())
    (await beat.begun()).set_result(None)  # nothing has changed
    pause = await beat.begun()
    claim = await store.claim_run("w", 60.0)
    assert claim is not None
    pause.set_result(None)
    pause = await beat.begun()
    await store.end_run(claim, RunState.SUCCEEDED, "", "")
    pause.set_result(None)
    await watching
    assert seen == [RunState.QUEUED, RunState.RUNNING, RunState.SUCCEEDED]
    assert watches.polled == 0


async def test_watchers_of_a_run_share_one_poll() -> None:
    """A hundred watchers cost the store what one does."""
    store, beat = MemoryJobStore(), _Beat()
    run, watches = await _run(store), RunWatches(store, beat)

    async def last() -> Run:
        return [state async for state in watches.watch("acme", run.run_id)][-1]

    watching = [asyncio.create_task(last()) for _ in range(100)]
    pause = await beat.begun()
    assert (store.reads, watches.polled) == (1, 1)
    await store.cancel_run("acme", run.run_id)
    pause.set_result(None)
    ended = await asyncio.gather(*watching)
    assert {one.state for one in ended} == {RunState.CANCELLED}
    assert store.reads == 2


async def test_watcher_who_leaves_frees_everything() -> None:
    """The last one who leaves ends the poll, at once."""
    store, beat = MemoryJobStore(), _Beat()
    run, watches = await _run(store), RunWatches(store, beat)
    tasks = len(asyncio.all_tasks())
    async with aclosing(watches.watch("acme", run.run_id)) as first:
        await anext(first)
        async with aclosing(watches.watch("acme", run.run_id)) as second:
            await anext(second)
        assert watches.polled == 1
    assert watches.polled == 0
    assert len(asyncio.all_tasks()) == tasks


async def test_watch_of_an_ended_run_ends_at_once() -> None:
    """Who comes late sees the end."""
    store = MemoryJobStore()
    run = await _run(store)
    await store.cancel_run("acme", run.run_id)
    states = [state.state async for state in RunWatches(store, _Beat()).watch("acme", run.run_id)]
    assert states == [RunState.CANCELLED]


async def test_watch_of_another_tenants_run_finds_none() -> None:
    """A run of another tenant is not there, even while its own watches it."""
    store, beat = MemoryJobStore(), _Beat()
    run, watches = await _run(store), RunWatches(store, beat)
    async with aclosing(watches.watch("acme", run.run_id)) as own:
        await anext(own)
        with pytest.raises(RunNotFound):
            await anext(watches.watch("umbrella", run.run_id))
    assert watches.polled == 0


class _Broken(MemoryJobStore):
    """A store that fails when it is told to."""

    broken = False

    async def get_run(self, tenant: str, run_id: str) -> Run:
        if self.broken:
            raise JobStoreUnavailable("memory", "gone")
        return await super().get_run(tenant, run_id)


async def test_watch_ends_with_the_store() -> None:
    """When the store fails all watchers are told, and one who comes later asks anew."""
    store, beat = _Broken(), _Beat()
    run, watches = await _run(store), RunWatches(store, beat)
    async with aclosing(watches.watch("acme", run.run_id)) as states:
        await anext(states)
        store.broken = True
        (await beat.begun()).set_result(None)
        with pytest.raises(JobStoreUnavailable):
            await anext(states)
    store.broken = False
    async with aclosing(watches.watch("acme", run.run_id)) as states:
        assert (await anext(states)).run_id == run.run_id


async def test_watchers_are_let_go_when_the_server_stops() -> None:
    """A stop does not wait for a run that somebody watches, and nobody begins to watch."""
    store, beat = MemoryJobStore(), _Beat()
    run, watches = await _run(store), RunWatches(store, beat)
    async with aclosing(watches.watch("acme", run.run_id)) as states:
        await anext(states)
        watches.end(ShuttingDown())
        with pytest.raises(ShuttingDown):
            await anext(states)
    with pytest.raises(ShuttingDown):
        await anext(watches.watch("acme", run.run_id))
    assert watches.polled == 0
