"""Jobs and their runs: declared, queued, claimed, renewed, ended. The caller has the transaction."""

from __future__ import annotations

import secrets
import sqlite3
from datetime import UTC, datetime

from indexers.errors import JobError, JobNotFound, LeaseLost, RunActive, RunNotFound
from indexers.jobs.sqlite.counting import Changes
from indexers.jobs.sqlite.letters import forget_passed, letters_as_items
from indexers.jobs.sqlite.rows import JOB, RUN, Row, job_of, request_json, run_of
from indexers.jobs.state import ItemState, Job, JobKey, Run, RunClaim, RunRequest, RunState

_LEFT = (ItemState.QUEUED.value, ItemState.LEASED.value)


def put_job(connection: sqlite3.Connection, job: Job) -> None:
    """Declares a job."""
    values = (
        job.key.tenant,
        job.key.name,
        job.spec.model_dump_json(),
        job.base_folder,
        job.updated_at.timestamp(),
        job.paused,
    )
    connection.execute("INSERT OR REPLACE INTO jobs VALUES (?, ?, ?, ?, ?, ?)", values)


def get_job(connection: sqlite3.Connection, key: JobKey) -> Job:
    """Returns a job. Raises: JobNotFound."""
    query = f"SELECT {JOB} FROM jobs WHERE tenant = ? AND name = ?"  # noqa: S608 - our own column names
    row = connection.execute(query, (key.tenant, key.name)).fetchone()
    if row is None:
        raise JobNotFound(key.name)
    return job_of(row)


def list_jobs(connection: sqlite3.Connection, tenant: str) -> list[Job]:
    """Returns jobs by name."""
    query = f"SELECT {JOB} FROM jobs WHERE ? IN ('', tenant) ORDER BY tenant, name"  # noqa: S608
    return [job_of(row) for row in connection.execute(query, (tenant,)).fetchall()]


def remove_job(connection: sqlite3.Connection, key: JobKey) -> None:
    """Forgets a job with its runs. Raises: JobNotFound, RunActive."""
    get_job(connection, key)
    _refuse_active(connection, key)
    values = (key.tenant, key.name)
    runs = [one for (one,) in connection.execute("SELECT run_id FROM runs WHERE tenant = ? AND job = ?", values)]
    for run_id in runs:
        forget_rows(connection, run_id)
        connection.execute("DELETE FROM counts WHERE run_id = ?", (run_id,))
    for table in ("runs", "dead_letters", "remembered"):
        connection.execute(f"DELETE FROM {table} WHERE tenant = ? AND job = ?", values)  # noqa: S608
    connection.execute("DELETE FROM jobs WHERE tenant = ? AND name = ?", values)


def submit(connection: sqlite3.Connection, key: JobKey, request: RunRequest, now: float) -> Run:
    """Queues a run. Raises: JobNotFound, RunActive, JobError when there is nothing to try again."""
    job = get_job(connection, key)
    _refuse_active(connection, key)
    run_id = _new_id(connection, now)
    spec = job.spec.model_dump_json()
    connection.execute(
        "INSERT INTO runs (run_id, tenant, job, spec, base_folder, request, state, created_at, scanned)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            run_id,
            key.tenant,
            key.name,
            spec,
            job.base_folder,
            request_json(request),
            RunState.QUEUED.value,
            now,
            request.only_failures,
        ),
    )
    if request.only_failures:
        offered = letters_as_items(connection, key, run_id)
        if not offered:
            raise JobError(f"job {key.name!r} has no failures that could be tried again")
        changes = Changes()
        changes.items[ItemState.QUEUED.value] = offered
        changes.apply(connection, run_id)
    return get_run(connection, key.tenant, run_id)


def get_run(connection: sqlite3.Connection, tenant: str, run_id: str) -> Run:
    """Returns a run. Raises: RunNotFound."""
    query = f"SELECT {RUN} FROM runs WHERE run_id = ? AND ? IN ('', tenant)"  # noqa: S608
    row = connection.execute(query, (run_id, tenant)).fetchone()
    if row is None:
        raise RunNotFound(run_id)
    return run_of(connection, row)


def list_runs(connection: sqlite3.Connection, tenant: str, job: str, limit: int, before: str) -> list[Run]:
    """Returns runs, newest first."""
    query = (
        f"SELECT {RUN} FROM runs WHERE ? IN ('', tenant) AND ? IN ('', job) AND (? = '' OR run_id < ?)"  # noqa: S608
        " ORDER BY run_id DESC LIMIT ?"
    )
    rows = connection.execute(query, (tenant, job, before, before, limit)).fetchall()
    return [run_of(connection, row) for row in rows]


def claim_run(connection: sqlite3.Connection, worker: str, until: float, now: float, which: Row) -> RunClaim | None:
    """Claims the oldest run that is queued or whose claim has lapsed; `which` is (tenant, run id), empty for any."""
    tenant, run_id = which
    found = connection.execute(
        "SELECT run_id FROM runs WHERE (state = 'queued' OR (state = 'running' AND claimed_until <= ?))"
        " AND ? IN ('', tenant) AND ? IN ('', run_id) ORDER BY run_id LIMIT 1",
        (now, tenant, run_id),
    ).fetchone()
    if found is None:
        return None
    fence = connection.execute(
        "UPDATE runs SET state = 'running', worker = ?, claimed_until = ?, fence = fence + 1,"
        " started_at = coalesce(started_at, ?) WHERE run_id = ? RETURNING fence",
        (worker, until, now, found[0]),
    ).fetchall()[0][0]
    return RunClaim(get_run(connection, "", found[0]), worker, fence)


def check_claim(connection: sqlite3.Connection, claim: RunClaim) -> str:
    """Returns the run's id while the claim holds. Raises: LeaseLost."""
    run_id = claim.run.run_id
    row = connection.execute("SELECT fence, state FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    if row is None or row != (claim.fence, RunState.RUNNING.value):
        raise LeaseLost(f"run {run_id}")
    return run_id


def end_run(
    connection: sqlite3.Connection, claim: RunClaim, state: RunState, texts: tuple[str, str], now: float
) -> Run:
    """Ends a run; `texts` are reason and report. Raises: LeaseLost."""
    run_id = check_claim(connection, claim)
    _end(connection, run_id, state, texts, now)
    if state in (RunState.SUCCEEDED, RunState.PARTIAL) and not claim.run.request.only_failures:
        forget_passed(connection, claim.run.key, run_id)
    return get_run(connection, "", run_id)


def cancel_run(connection: sqlite3.Connection, tenant: str, run_id: str, now: float) -> Run:
    """Asks a run to stop; one that is queued ends at once. Raises: RunNotFound."""
    run = get_run(connection, tenant, run_id)
    if run.state is RunState.QUEUED or run.state is RunState.WAITING:
        _end(connection, run_id, RunState.CANCELLED, ("was cancelled before anybody worked on it", run.report), now)
    if not run.state.ended:
        connection.execute("UPDATE runs SET cancel_requested = 1 WHERE run_id = ?", (run_id,))
    return get_run(connection, tenant, run_id)


def forget_rows(connection: sqlite3.Connection, run_id: str) -> None:
    """Forgets the items and documents of a run."""
    connection.execute("DELETE FROM items WHERE run_id = ?", (run_id,))
    connection.execute("DELETE FROM documents WHERE run_id = ?", (run_id,))


def _end(connection: sqlite3.Connection, run_id: str, state: RunState, texts: tuple[str, str], now: float) -> None:
    reason, report = texts
    changes = Changes()
    for left in _LEFT:
        dropped = connection.execute("DELETE FROM items WHERE run_id = ? AND state = ?", (run_id, left)).rowcount
        changes.items[left] -= dropped
    changes.apply(connection, run_id)
    connection.execute(
        "UPDATE runs SET state = ?, reason = ?, report = ?, ended_at = ?, claimed_until = 0, worker = ''"
        " WHERE run_id = ?",
        (state.value, reason, report, now, run_id),
    )


def _refuse_active(connection: sqlite3.Connection, key: JobKey) -> None:
    row = connection.execute(
        "SELECT run_id FROM runs WHERE tenant = ? AND job = ? AND state IN ('queued', 'running')",
        (key.tenant, key.name),
    ).fetchone()
    if row is not None:
        raise RunActive(key.name, row[0])


def _new_id(connection: sqlite3.Connection, now: float) -> str:
    """Returns an id that is greater than all before it."""
    newest = connection.execute("SELECT max(run_id) FROM runs").fetchone()[0] or ""
    moment = now
    while (made := f"{datetime.fromtimestamp(moment, UTC):%Y%m%dt%H%M%S%f}-{secrets.token_hex(3)}") <= newest:
        moment += 1e-3
    return made
