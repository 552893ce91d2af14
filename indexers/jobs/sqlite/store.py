"""The default JobStore: one SQLite file that the server, workers and the command line use at once.

A thread of its own runs the SQL, so the event loop waits for no disk and no other process. Every method is one write
transaction, taken at its beginning: two processes never decide on the same state.

A lease table of our own, since no job library carries what is asked for with a local mode: huey and litequeue have no
leases a document and no counts, procrastinate wants PostgreSQL, arq, rq and dramatiq want Redis or RabbitMQ.
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

from indexers.errors import JobStoreUnavailable
from indexers.jobs.sqlite import documents, items, jobs, letters
from indexers.jobs.sqlite.schema import open_database, store_errors, transaction
from indexers.jobs.state import (
    DocumentRecord,
    DocumentState,
    Failure,
    ItemLease,
    ItemOutcome,
    Job,
    JobKey,
    Run,
    RunClaim,
    RunRequest,
    RunState,
)
from indexers.sources.source import ItemRef

P = ParamSpec("P")
T = TypeVar("T")


class SqliteJobStore:
    """Jobs, runs, items and documents in one file."""

    def __init__(self, path: Path, now: Callable[[], float] = time.time) -> None:
        """The file is opened, or made, at the first call. `now` gives seconds since the epoch."""
        self._path = path
        self._now = now
        self._connection: sqlite3.Connection | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="job-store")
        self._closed = False

    async def put_job(self, job: Job) -> None:
        """Declares a job, or declares it anew."""
        await self._write(jobs.put_job, job)

    async def get_job(self, key: JobKey) -> Job:
        """Returns a job."""
        return await self._read(jobs.get_job, key)

    async def list_jobs(self, tenant: str = "") -> list[Job]:
        """Returns jobs by name."""
        return await self._read(jobs.list_jobs, tenant)

    async def remove_job(self, key: JobKey) -> None:
        """Forgets a job with its runs."""
        await self._write(jobs.remove_job, key)

    async def submit(self, key: JobKey, request: RunRequest) -> Run:
        """Queues a run of the job as it is declared now."""
        return await self._write(jobs.submit, key, request, self._now())

    async def get_run(self, tenant: str, run_id: str) -> Run:
        """Returns a run."""
        return await self._read(jobs.get_run, tenant, run_id)

    async def list_runs(self, tenant: str, job: str = "", limit: int = 100, before: str = "") -> list[Run]:
        """Returns runs, newest first."""
        return await self._read(jobs.list_runs, tenant, job, limit, before)

    async def claim_run(self, worker: str, lease_s: float, tenant: str = "", run_id: str = "") -> RunClaim | None:
        """Claims the oldest run that is queued, or whose claim has lapsed."""
        now = self._now()
        return await self._write(jobs.claim_run, worker, now + lease_s, now, (tenant, run_id))

    async def renew_run(self, claim: RunClaim, lease_s: float) -> Run:
        """Prolongs the claim and returns the run as it stands."""
        return await self._write(_renew_run, claim, self._now() + lease_s)

    async def mark_scanned(self, claim: RunClaim) -> None:
        """Notes that the scan is through."""
        await self._write(_mark_scanned, claim)

    async def end_run(self, claim: RunClaim, state: RunState, reason: str, report: str) -> Run:
        """Ends the run and drops what is left of its queue."""
        return await self._write(jobs.end_run, claim, state, (reason, report), self._now())

    async def cancel_run(self, tenant: str, run_id: str) -> Run:
        """Asks the run to stop."""
        return await self._write(jobs.cancel_run, tenant, run_id, self._now())

    async def offer(self, claim: RunClaim, refs: Sequence[ItemRef]) -> None:
        """Queues items that the run does not have yet."""
        await self._write(_offer, claim, refs)

    async def fail_scanned(self, claim: RunClaim, uri: str, name: str, outcome: ItemOutcome) -> None:
        """Notes what the scan could not list, or leaves out."""
        await self._write(_note_scanned, claim, (uri, name), outcome, self._now())

    async def lease_items(
        self, run_id: str, worker: str, limit: int, lease_s: float, *, attempts: int = 100
    ) -> list[ItemLease]:
        """Leases items that are due, oldest first, and those whose lease has lapsed."""
        now = self._now()
        return await self._write(items.lease, run_id, worker, limit, (now, now + lease_s, attempts))

    async def renew_items(self, leases: Sequence[ItemLease], lease_s: float) -> list[ItemLease]:
        """Prolongs leases and returns those that are still held."""
        return await self._write(items.renew, leases, self._now() + lease_s)

    async def settle(self, settled: Sequence[tuple[ItemLease, ItemOutcome]]) -> list[ItemLease]:
        """Ends leases and returns those that were no longer held."""
        return await self._write(items.settle, settled, self._now())

    async def record(self, run_id: str, worker: str, documents_: Sequence[DocumentRecord]) -> None:
        """Notes the states of documents."""
        await self._write(documents.record, run_id, worker, documents_, self._now())

    async def seen(self, run_id: str, document_ids: Sequence[str]) -> set[str]:
        """Returns which of the documents have come by in the run."""
        return await self._read(documents.seen, run_id, document_ids)

    async def failed_items(self, run_id: str) -> list[str]:
        """Returns the items of which nothing is known."""
        return await self._read(_failed_items, run_id)

    async def documents(
        self, run_id: str, states: Sequence[DocumentState] = (), after: str = "", limit: int = 1_000
    ) -> list[DocumentRecord]:
        """Returns documents of a run by id."""
        return await self._read(documents.listed, run_id, states, after, limit)

    async def failures(self, key: JobKey, after: str = "", limit: int = 1_000) -> list[Failure]:
        """Returns the dead letters of the job."""
        return await self._read(letters.list_letters, key, after, limit)

    async def next_due_s(self, run_id: str) -> float | None:
        """Returns in how many seconds something can be leased; None when nothing is left."""
        return await self._read(items.next_due_s, run_id, self._now())

    async def release(self, worker: str, *, died: bool = False) -> None:
        """Gives back at once all that a worker holds."""
        await self._write(_release, worker, self._now(), died)

    async def holders(self) -> set[str]:
        """Returns the workers that hold a run or an item."""
        return await self._read(_holders)

    async def remember(self, key: JobKey, name: str, value: bytes) -> None:
        """Keeps a value of a job under a name; an empty one removes it."""
        await self._write(_remember, key, name, value)

    async def recall(self, key: JobKey, names: Sequence[str]) -> dict[str, bytes]:
        """Returns what is remembered under the names."""
        return await self._read(_recall, key, names)

    async def prune(self, key: JobKey, keep_runs: int) -> None:
        """Forgets the items and documents of all but the newest runs."""
        await self._write(_prune, key, keep_runs)

    async def close(self) -> None:
        """Closes the file; a second call does nothing."""
        if not self._closed:
            self._closed = True
            await asyncio.to_thread(self._thread.shutdown)
            if self._connection is not None:
                self._connection.close()

    async def _read(
        self, call: Callable[Concatenate[sqlite3.Connection, P], T], *values: P.args, **named: P.kwargs
    ) -> T:
        return await self._run(lambda connection: call(connection, *values, **named), writes=False)

    async def _write(
        self, call: Callable[Concatenate[sqlite3.Connection, P], T], *values: P.args, **named: P.kwargs
    ) -> T:
        return await self._run(lambda connection: call(connection, *values, **named), writes=True)

    async def _run(self, call: Callable[[sqlite3.Connection], T], *, writes: bool) -> T:
        if self._closed:
            raise JobStoreUnavailable(str(self._path), "it was closed")
        loop = asyncio.get_running_loop()
        # A transaction that has begun goes on to its end, whoever leaves meanwhile.
        return await asyncio.shield(loop.run_in_executor(self._thread, self._call, call, writes))

    def _call(self, call: Callable[[sqlite3.Connection], T], writes: bool) -> T:
        if self._connection is None:
            self._connection = open_database(self._path)
        with store_errors(self._path):
            if not writes:
                return call(self._connection)
            with transaction(self._connection):
                return call(self._connection)


def _renew_run(connection: sqlite3.Connection, claim: RunClaim, until: float) -> Run:
    run_id = jobs.check_claim(connection, claim)
    connection.execute("UPDATE runs SET claimed_until = ? WHERE run_id = ?", (until, run_id))
    return jobs.get_run(connection, "", run_id)


def _mark_scanned(connection: sqlite3.Connection, claim: RunClaim) -> None:
    connection.execute("UPDATE runs SET scanned = 1 WHERE run_id = ?", (jobs.check_claim(connection, claim),))


def _offer(connection: sqlite3.Connection, claim: RunClaim, refs: Sequence[ItemRef]) -> None:
    items.offer(connection, jobs.check_claim(connection, claim), refs)


def _note_scanned(
    connection: sqlite3.Connection, claim: RunClaim, place: tuple[str, str], outcome: ItemOutcome, now: float
) -> None:
    items.note_scanned(connection, jobs.check_claim(connection, claim), place, outcome, now)


def _release(connection: sqlite3.Connection, worker: str, now: float, died: bool) -> None:
    items.release(connection, worker, now, died=died)


def _failed_items(connection: sqlite3.Connection, run_id: str) -> list[str]:
    query = "SELECT uri FROM items WHERE run_id = ? AND state NOT IN ('done', 'skipped') ORDER BY uri"
    return [uri for (uri,) in connection.execute(query, (run_id,))]


def _holders(connection: sqlite3.Connection) -> set[str]:
    query = "SELECT worker FROM runs WHERE worker <> '' UNION SELECT worker FROM items WHERE worker <> ''"
    return {worker for (worker,) in connection.execute(query)}


def _remember(connection: sqlite3.Connection, key: JobKey, name: str, value: bytes) -> None:
    place = (key.tenant, key.name, name)
    if value:
        connection.execute("INSERT OR REPLACE INTO remembered VALUES (?, ?, ?, ?)", (*place, value))
    else:
        connection.execute("DELETE FROM remembered WHERE tenant = ? AND job = ? AND name = ?", place)


def _recall(connection: sqlite3.Connection, key: JobKey, names: Sequence[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in names:
        row = connection.execute(
            "SELECT value FROM remembered WHERE tenant = ? AND job = ? AND name = ?", (key.tenant, key.name, name)
        ).fetchone()
        if row is not None:
            found[name] = row[0]
    return found


def _prune(connection: sqlite3.Connection, key: JobKey, keep_runs: int) -> None:
    query = "SELECT run_id FROM runs WHERE tenant = ? AND job = ? ORDER BY run_id DESC LIMIT -1 OFFSET ?"
    for (run_id,) in connection.execute(query, (key.tenant, key.name, keep_runs)).fetchall():
        jobs.forget_rows(connection, run_id)
