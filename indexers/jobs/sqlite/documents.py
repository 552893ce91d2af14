"""The documents of a run: each counts once, with its last state."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence

from indexers.jobs.sqlite.counting import Changes
from indexers.jobs.sqlite.letters import note_documents
from indexers.jobs.sqlite.rows import DOCUMENT, record_of, record_row
from indexers.jobs.state import DocumentRecord, DocumentState, JobKey

_WRITTEN = frozenset({DocumentState.VERIFIED.value, DocumentState.WRITTEN.value})
_EARLY = frozenset({DocumentState.SEEN, DocumentState.PARSED, DocumentState.EMBEDDED})
_STORED = frozenset({DocumentState.UNCHANGED, DocumentState.SKIPPED})


def record(
    connection: sqlite3.Connection, run_id: str, worker: str, records: Sequence[DocumentRecord], now: float
) -> None:
    """Notes states; what a worker says of items that it no longer holds is passed over."""
    row = connection.execute("SELECT tenant, job FROM runs WHERE run_id = ?", (run_id,)).fetchone()
    if row is None:
        return
    held = _held(connection, run_id, worker, {one.item_uri for one in records})
    before = _before(connection, run_id, [one.document_id for one in records])
    kept: dict[str, DocumentRecord] = {}
    changes = Changes()
    for one in records:
        old = before.get(one.document_id)
        if one.item_uri not in held or (old is not None and _is_lesser(old[0], one.state)):
            continue
        if old is not None and old[0] == "written" and one.state is DocumentState.UNCHANGED:
            one = _as_verified(one, old)  # noqa: PLW2901 - it was written in this run, and is proven now
        _count(changes, old, one)
        before[one.document_id] = (one.state.value, one.chunk_count, one.token_count, one.kind)
        kept[one.document_id] = one
    connection.executemany(
        "INSERT OR REPLACE INTO documents VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [record_row(run_id, one) for one in kept.values()],
    )
    note_documents(connection, JobKey(*row), run_id, list(kept.values()), now)
    changes.apply(connection, run_id)


def seen(connection: sqlite3.Connection, run_id: str, document_ids: Sequence[str]) -> set[str]:
    """Returns which of the documents have come by in the run."""
    found = connection.execute(
        "SELECT document_id FROM documents WHERE run_id = ? AND document_id IN (SELECT value FROM json_each(?))"
        " AND state NOT IN ('deleting', 'deleted')",
        (run_id, json.dumps(list(document_ids))),
    )
    return {one for (one,) in found}


def listed(
    connection: sqlite3.Connection, run_id: str, states: Sequence[DocumentState], after: str, limit: int
) -> list[DocumentRecord]:
    """Returns documents by id."""
    wanted = json.dumps([state.value for state in states or DocumentState])
    query = (
        f"SELECT {DOCUMENT} FROM documents WHERE run_id = ? AND document_id > ?"  # noqa: S608
        " AND state IN (SELECT value FROM json_each(?)) ORDER BY document_id LIMIT ?"
    )
    return [record_of(row) for row in connection.execute(query, (run_id, after, wanted, limit)).fetchall()]


def _is_lesser(old: str, new: DocumentState) -> bool:
    """Tells whether a state of a second delivery takes nothing from what was reached in the run before."""
    return (old in _WRITTEN and new in _EARLY) or (old == DocumentState.VERIFIED.value and new in _STORED)


def _held(connection: sqlite3.Connection, run_id: str, worker: str, uris: set[str]) -> set[str]:
    """Returns the items that the worker holds; the empty one is the coordinator's own."""
    found = connection.execute(
        "SELECT uri FROM items WHERE run_id = ? AND worker = ? AND uri IN (SELECT value FROM json_each(?))",
        (run_id, worker, json.dumps(sorted(uris))),
    )
    return {"", *(one for (one,) in found)}


def _before(
    connection: sqlite3.Connection, run_id: str, document_ids: Sequence[str]
) -> dict[str, tuple[str, int, int, str]]:
    found = connection.execute(
        "SELECT document_id, state, chunk_count, token_count, kind FROM documents"
        " WHERE run_id = ? AND document_id IN (SELECT value FROM json_each(?))",
        (run_id, json.dumps(list(document_ids))),
    )
    return {name: (state, chunks, tokens, kind) for name, state, chunks, tokens, kind in found.fetchall()}


def _as_verified(one: DocumentRecord, old: tuple[str, int, int, str]) -> DocumentRecord:
    return DocumentRecord(
        one.document_id, one.item_uri, DocumentState.VERIFIED, one.fingerprint, old[1], old[2], one.attempt
    )


def _count(changes: Changes, old: tuple[str, int, int, str] | None, new: DocumentRecord) -> None:
    if old is not None:
        state, chunks, tokens, kind = old
        changes.documents[state] -= 1
        if state in _WRITTEN:
            changes.chunks -= chunks
            changes.tokens -= tokens
        if state == DocumentState.FAILED.value:
            changes.failures[kind] -= 1
    changes.documents[new.state.value] += 1
    if new.state.value in _WRITTEN:
        changes.chunks += new.chunk_count
        changes.tokens += new.token_count
    if new.state is DocumentState.FAILED:
        changes.failures[new.kind] += 1
