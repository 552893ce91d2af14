"""Dead letters: what failed and has not succeeded since, over all runs of a job."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from indexers.jobs.sqlite.rows import FAILURE, failure_of
from indexers.jobs.state import DocumentRecord, DocumentState, Failure, JobKey

_GOOD = frozenset({DocumentState.VERIFIED, DocumentState.UNCHANGED, DocumentState.SKIPPED, DocumentState.DELETED})
_INSERT = """
INSERT OR REPLACE INTO dead_letters
SELECT runs.tenant, runs.job, ?, ?, runs.run_id, ?, ?, ?, ?, ?,
    coalesce(items.name, ?), coalesce(items.fingerprint, ''), coalesce(items.size_bytes, 0)
FROM runs LEFT JOIN items ON items.run_id = runs.run_id AND items.uri = ? WHERE runs.run_id = ?
"""


def note_item(connection: sqlite3.Connection, run_id: str, failure: tuple[str, str, str, str, int], now: float) -> None:
    """Notes an item that was given up: (uri, name, reason, kind, attempt)."""
    uri, name, reason, kind, attempt = failure
    connection.execute(_INSERT, (uri, "", name, reason, kind, attempt, now, name, uri, run_id))


def forget_item(connection: sqlite3.Connection, key: JobKey, uri: str) -> None:
    """Forgets the failure of an item as a whole, since it could be read."""
    connection.execute(
        "DELETE FROM dead_letters WHERE tenant = ? AND job = ? AND item_uri = ? AND document_id = ''",
        (key.tenant, key.name, uri),
    )


def note_documents(
    connection: sqlite3.Connection, key: JobKey, run_id: str, records: Sequence[DocumentRecord], now: float
) -> None:
    """Notes documents that failed, and forgets those that succeeded."""
    for one in records:
        if one.state is DocumentState.FAILED:
            name = one.document_id
            values = (one.item_uri, one.document_id, name, one.reason, one.kind, one.attempt, now, name, one.item_uri)
            connection.execute(_INSERT, (*values, run_id))
    good = [(key.tenant, key.name, one.document_id) for one in records if one.state in _GOOD]
    connection.executemany("DELETE FROM dead_letters WHERE tenant = ? AND job = ? AND document_id = ?", good)


def forget_passed(connection: sqlite3.Connection, key: JobKey, run_id: str) -> None:
    """Forgets, after a whole run, what is no longer at the source, and failed rows that did not come by again."""
    connection.execute(
        "DELETE FROM dead_letters WHERE tenant = ? AND job = ? AND run_id <> ?",
        (key.tenant, key.name, run_id),
    )


def letters_as_items(connection: sqlite3.Connection, key: JobKey, run_id: str) -> int:
    """Queues the items of all dead letters for a run and returns how many; an unlisted folder is none.

    A folder has a slash at the end of URI and name (the root has no name); a page at most at the end of its URI.
    """
    return connection.execute(
        "INSERT INTO items (run_id, uri, name, fingerprint, size_bytes, state)"
        " SELECT ?, item_uri, max(item_name), max(fingerprint), max(size_bytes), 'queued' FROM dead_letters"
        " WHERE tenant = ? AND job = ? AND NOT (item_uri LIKE '%/' AND (item_name = '' OR item_name LIKE '%/'))"
        " GROUP BY item_uri ORDER BY item_uri",
        (run_id, key.tenant, key.name),
    ).rowcount


def list_letters(connection: sqlite3.Connection, key: JobKey, after: str, limit: int) -> list[Failure]:
    """Returns dead letters by item and document."""
    query = (
        f"SELECT {FAILURE} FROM dead_letters WHERE tenant = ? AND job = ? AND item_uri > ?"  # noqa: S608
        " ORDER BY item_uri, document_id LIMIT ?"
    )
    return [failure_of(row) for row in connection.execute(query, (key.tenant, key.name, after, limit)).fetchall()]
