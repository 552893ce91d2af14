"""One file that several processes work on at once, and what becomes of it when one is killed or it is broken."""

from __future__ import annotations

import asyncio
import multiprocessing
import sqlite3
from collections.abc import Callable
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

from indexers.errors import JobStoreUnavailable
from indexers.jobs.sqlite.store import SqliteJobStore
from indexers.jobs.state import DocumentState, ItemOutcome, ItemState
from tests.fakes.job_stores import LEASE_S, Clock, Queue, document, item, opened

_DONE = ItemOutcome(ItemState.DONE)
_WAIT_S = 60.0


def _works(path: Path, run_id: str, worker: str, told: Connection) -> None:
    """Is a process that works off the queue and tells what it got."""
    told.send(asyncio.run(_worked(path, run_id, worker)))


async def _worked(path: Path, run_id: str, worker: str) -> list[str]:
    names: list[str] = []
    async with opened(SqliteJobStore(path, Clock())) as store:
        while leases := await store.lease_items(run_id, worker, 7, LEASE_S):
            await store.record(run_id, worker, [document(one.name, one.uri) for one in leases])
            assert await store.settle([(one, _DONE) for one in leases]) == []
            names += [one.name for one in leases]
    return names


def _hangs(path: Path, run_id: str, worker: str, told: Connection) -> None:
    """Is a process that leases and writes, says so, and then hangs in the middle of a transaction."""
    asyncio.run(_leased(path, run_id, worker))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM items")
        told.send([])
        told.recv()


async def _leased(path: Path, run_id: str, worker: str) -> None:
    async with opened(SqliteJobStore(path, Clock())) as store:
        leases = await store.lease_items(run_id, worker, 2, LEASE_S)
        await store.record(run_id, worker, [document(one.name, one.uri, DocumentState.WRITTEN) for one in leases])


def _started(
    work: Callable[[Path, str, str, Connection], None], path: Path, run_id: str, worker: str
) -> tuple[multiprocessing.context.SpawnProcess, Connection]:
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=work, args=(path, run_id, worker, there))
    process.start()
    there.close()
    return process, here


def _told(pipe: Connection) -> list[str]:
    assert pipe.poll(_WAIT_S), "the process never said anything"
    names: list[str] = pipe.recv()
    return names


async def test_processes_share_one_file(tmp_path: Path) -> None:
    """Two processes work off one queue: each item goes to one of them, and all counts are right."""
    path, names = tmp_path / "jobs.sqlite", [f"{number:03}" for number in range(300)]
    async with opened(SqliteJobStore(path, Clock())) as store:
        queue = Queue(store, Clock())
        await queue.declare()
        claim = await queue.start(names)
        started = [_started(_works, path, claim.run.run_id, worker) for worker in ("w1", "w2")]
        got = [await asyncio.to_thread(_told, pipe) for _, pipe in started]
        for process, pipe in started:
            process.join(_WAIT_S)
            pipe.close()
        assert sorted(got[0] + got[1]) == names
        run = await queue.run(claim)
    assert run.items == {ItemState.DONE: 300}
    assert (run.documents, run.chunks) == ({DocumentState.VERIFIED: 300}, 600)


async def test_killed_process_leaves_the_file_whole(tmp_path: Path) -> None:
    """A process that is killed within a transaction blocks nobody, undoes nothing and loses nothing. VEC-15."""
    path = tmp_path / "jobs.sqlite"
    async with opened(SqliteJobStore(path, Clock())) as store:
        queue = Queue(store, Clock())
        await queue.declare()
        claim = await queue.start("abc")
        process, pipe = _started(_hangs, path, claim.run.run_id, "w9")
        assert await asyncio.to_thread(_told, pipe) == []
        process.kill()
        process.join(_WAIT_S)
        pipe.close()
        run = await queue.run(claim)
        assert run.items == {ItemState.LEASED: 2, ItemState.QUEUED: 1}
        assert run.documents == {DocumentState.WRITTEN: 2}
        await store.release("w9", died=True)
        leases = await store.lease_items(run.run_id, "w1", 9, LEASE_S)
        assert [(one.name, one.attempt) for one in leases] == [("a", 2), ("b", 2), ("c", 1)]


@pytest.mark.parametrize("content", [b"no database at all " * 100, b""])
async def test_store_says_what_is_wrong_with_its_file(tmp_path: Path, content: bytes) -> None:
    """What is no database, or of another format, is refused by name and left as it is; an empty file is a new one."""
    path = tmp_path / "folder" / "jobs.sqlite"
    path.parent.mkdir()
    path.write_bytes(content)
    async with opened(SqliteJobStore(path)) as store:
        if content:
            with pytest.raises(JobStoreUnavailable, match=r"jobs\.sqlite"):
                await store.list_jobs()
            assert path.read_bytes() == content
        else:
            assert await store.list_jobs() == []
    if not content:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA user_version = 99")
        async with opened(SqliteJobStore(path)) as store:
            with pytest.raises(JobStoreUnavailable, match="format 99"):
                await store.list_jobs()


async def test_call_goes_on_when_its_caller_leaves(tmp_path: Path) -> None:
    """A cancelled caller leaves no half transaction behind: what it began is done, as a whole."""
    async with opened(SqliteJobStore(tmp_path / "jobs.sqlite", Clock())) as store:
        queue = Queue(store, Clock())
        await queue.declare()
        claim = await queue.start()
        offering = asyncio.create_task(store.offer(claim, [item(str(number)) for number in range(2_000)]))
        await asyncio.sleep(0)
        offering.cancel()
        with pytest.raises(asyncio.CancelledError):
            await offering
        assert (await queue.run(claim)).items == {ItemState.QUEUED: 2_000}
