"""The queue of a run's items: offered, leased, renewed, settled. Its caller has the transaction."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from indexers.jobs.sqlite.counting import Changes
from indexers.jobs.sqlite.letters import forget_item, note_item
from indexers.jobs.state import ItemLease, ItemOutcome, ItemState, JobKey
from indexers.sources.source import ItemRef

DIED = "its worker died, each time that it was tried"


def offer(connection: sqlite3.Connection, run_id: str, refs: Sequence[ItemRef]) -> None:
    """Queues items that the run does not have yet."""
    rows = [(run_id, one.uri, one.name, one.fingerprint, one.size_bytes) for one in refs]
    before = connection.total_changes
    connection.executemany(
        "INSERT OR IGNORE INTO items (run_id, uri, name, fingerprint, size_bytes, state)"
        " VALUES (?, ?, ?, ?, ?, 'queued')",
        rows,
    )
    changes = Changes()
    changes.items[ItemState.QUEUED.value] = connection.total_changes - before
    changes.apply(connection, run_id)


def note_scanned(
    connection: sqlite3.Connection, run_id: str, place: tuple[str, str], outcome: ItemOutcome, now: float
) -> None:
    """Notes what a scan could not list or leaves out; `place` is (uri, name)."""
    uri, name = place
    inserted = connection.execute(
        "INSERT OR IGNORE INTO items (run_id, uri, name, fingerprint, size_bytes, state, attempt, reason, kind)"
        " VALUES (?, ?, ?, '', 0, ?, 1, ?, ?)",
        (run_id, uri, name, outcome.state.value, outcome.reason, outcome.kind),
    ).rowcount
    if not inserted:
        return
    changes = Changes()
    changes.items[outcome.state.value] += 1
    if outcome.state is ItemState.FAILED:
        changes.failures[outcome.kind] += 1
        note_item(connection, run_id, (uri, name, outcome.reason, outcome.kind, 1), now)
    changes.apply(connection, run_id)


def lease(
    connection: sqlite3.Connection, run_id: str, worker: str, limit: int, bounds: tuple[float, float, int]
) -> list[ItemLease]:
    """Leases items; `bounds` are (now, until, attempts)."""
    now, until, attempts = bounds
    key = _key(connection, run_id)
    if key is None:
        return []
    give_up(connection, run_id, "until <= ? AND attempt >= ?", (now, attempts), now)
    leases: list[ItemLease] = []
    changes = Changes()
    for number, state in _due(connection, run_id, now, limit):
        [row] = connection.execute(
            "UPDATE items SET state = 'leased', worker = ?, until = ?, fence = fence + 1, attempt = attempt + 1,"
            " attempts = ? WHERE number = ? RETURNING uri, name, fingerprint, size_bytes, fence, attempt",
            (worker, until, attempts, number),
        ).fetchall()
        changes.items[state] -= 1
        changes.items["leased"] += 1
        uri, name, fingerprint, size_bytes, fence, attempt = row
        leases.append(ItemLease(run_id, key, uri, name, fingerprint, size_bytes, worker, fence, attempt))
    changes.apply(connection, run_id)
    return leases


def renew(connection: sqlite3.Connection, leases: Sequence[ItemLease], until: float) -> list[ItemLease]:
    """Prolongs leases and returns those that are still held."""
    return [
        one
        for one in leases
        if connection.execute(
            "UPDATE items SET until = ? WHERE run_id = ? AND uri = ? AND state = 'leased' AND fence = ?",
            (until, one.run_id, one.uri, one.fence),
        ).rowcount
    ]


def settle(
    connection: sqlite3.Connection, settled: Sequence[tuple[ItemLease, ItemOutcome]], now: float
) -> list[ItemLease]:
    """Ends leases and returns those that were no longer held."""
    lost: list[ItemLease] = []
    changed: dict[str, Changes] = {}
    for one, outcome in settled:
        updated = connection.execute(
            "UPDATE items SET state = ?, reason = ?, kind = ?, due = ?, worker = '', until = 0"
            " WHERE run_id = ? AND uri = ? AND state = 'leased' AND fence = ?",
            (
                outcome.state.value,
                outcome.reason,
                outcome.kind,
                now + outcome.retry_in_s,
                one.run_id,
                one.uri,
                one.fence,
            ),
        ).rowcount
        if not updated:
            lost.append(one)
            continue
        changes = changed.setdefault(one.run_id, Changes())
        changes.items["leased"] -= 1
        changes.items[outcome.state.value] += 1
        if outcome.state is ItemState.FAILED:
            changes.failures[outcome.kind] += 1
            note_item(connection, one.run_id, (one.uri, one.name, outcome.reason, outcome.kind, one.attempt), now)
        elif outcome.state is not ItemState.QUEUED:
            forget_item(connection, one.key, one.uri)
    for run_id, changes in changed.items():
        changes.apply(connection, run_id)
    return lost


def give_up(connection: sqlite3.Connection, run_id: str, lapsed: str, values: Sequence[object], now: float) -> None:
    """Fails the leased items of a run that a condition holds for: they may be what kills workers."""
    found = connection.execute(
        "UPDATE items SET state = 'failed', kind = 'worker_died', reason = ?, worker = ''"  # noqa: S608 - ours
        f" WHERE run_id = ? AND state = 'leased' AND {lapsed} RETURNING uri, name, attempt",
        (DIED, run_id, *values),
    ).fetchall()
    changes = Changes()
    for uri, name, attempt in found:
        changes.items["leased"] -= 1
        changes.items["failed"] += 1
        changes.failures["worker_died"] += 1
        note_item(connection, run_id, (uri, name, DIED, "worker_died", attempt), now)
    changes.apply(connection, run_id)


def release(connection: sqlite3.Connection, worker: str, now: float, *, died: bool) -> None:
    """Gives back what a worker holds; with `died`, what was tried often enough is given up."""
    connection.execute(
        "UPDATE runs SET claimed_until = 0, worker = '' WHERE worker = ? AND state = 'running'", (worker,)
    )
    held = connection.execute("SELECT DISTINCT run_id FROM items WHERE worker = ?", (worker,)).fetchall()
    for (run_id,) in held:
        if died:
            give_up(connection, run_id, "worker = ? AND attempt >= attempts", (worker,), now)
        taken = "" if died else ", attempt = attempt - 1"
        freed = connection.execute(
            f"UPDATE items SET state = 'queued', worker = '', until = 0, due = 0{taken}"  # noqa: S608 - ours
            " WHERE run_id = ? AND worker = ? AND state = 'leased'",
            (run_id, worker),
        ).rowcount
        changes = Changes()
        changes.items["leased"] -= freed
        changes.items["queued"] += freed
        changes.apply(connection, run_id)


def next_due_s(connection: sqlite3.Connection, run_id: str, now: float) -> float | None:
    """Returns in how many seconds something can be leased; None when nothing is left."""
    due = connection.execute(
        "SELECT min(CASE state WHEN 'queued' THEN due ELSE until END) FROM items"
        " WHERE run_id = ? AND state IN ('queued', 'leased')",
        (run_id,),
    ).fetchone()[0]
    return None if due is None else max(0.0, due - now)


def _due(connection: sqlite3.Connection, run_id: str, now: float, limit: int) -> list[tuple[int, str]]:
    """Returns the oldest items that can be leased, from two walks along an index: one query would sort all items."""
    found: list[tuple[int, str]] = []
    for state, moment in (("queued", "due"), ("leased", "until")):
        found += connection.execute(
            f"SELECT number, state FROM items WHERE run_id = ? AND state = ? AND {moment} <= ?"  # noqa: S608 - ours
            " ORDER BY number LIMIT ?",
            (run_id, state, now, limit),
        ).fetchall()
    return sorted(found)[:limit]


def _key(connection: sqlite3.Connection, run_id: str) -> JobKey | None:
    row = connection.execute(
        "SELECT tenant, job FROM runs WHERE run_id = ? AND state = 'running'", (run_id,)
    ).fetchone()
    return None if row is None else JobKey(*row)
