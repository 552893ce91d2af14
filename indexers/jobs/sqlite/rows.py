"""Rows to values and back."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, TypeAlias

from indexers.jobs.spec import JobSpec
from indexers.jobs.state import (
    DocumentRecord,
    DocumentState,
    Failure,
    ItemState,
    Job,
    JobKey,
    Run,
    RunRequest,
    RunState,
)

Row: TypeAlias = "tuple[Any, ...]"

JOB = "tenant, name, spec, base_folder, updated_at, paused"
RUN = (
    "run_id, tenant, job, spec, base_folder, request, state, created_at, started_at, ended_at, cancel_requested,"
    " reason, scanned, chunks, tokens, worker, report"
)
DOCUMENT = "document_id, item_uri, state, fingerprint, chunk_count, token_count, attempt, reason, kind, warnings"
FAILURE = "run_id, item_uri, document_id, name, reason, kind, attempt, failed_at"


def job_of(row: Row) -> Job:
    """Reads a row of `JOB`."""
    tenant, name, spec, base_folder, updated_at, paused = row
    key = JobKey(tenant, name)
    return Job(key, JobSpec.model_validate_json(spec), base_folder, _time(updated_at), bool(paused))


def run_of(connection: sqlite3.Connection, row: Row) -> Run:
    """Reads a row of `RUN`, and the run's counts."""
    run_id, tenant, job, spec, base_folder, request, state, created, started, ended, *rest = row
    cancel_requested, reason, scanned, chunks, tokens, worker, report = rest
    counts = _counts(connection, run_id)
    return Run(
        run_id,
        JobKey(tenant, job),
        JobSpec.model_validate_json(spec),
        base_folder,
        RunRequest(**json.loads(request)),
        RunState(state),
        _time(created),
        None if started is None else _time(started),
        None if ended is None else _time(ended),
        bool(cancel_requested),
        reason,
        bool(scanned),
        {ItemState(name): count for name, count in counts["item"].items() if count},
        {DocumentState(name): count for name, count in counts["document"].items() if count},
        chunks,
        tokens,
        {name: count for name, count in counts["failure"].items() if count},
        worker,
        report,
    )


def request_json(request: RunRequest) -> str:
    """Writes how a run is asked for."""
    return json.dumps(asdict(request))


def record_of(row: Row) -> DocumentRecord:
    """Reads a row of `DOCUMENT`."""
    document_id, item_uri, state, fingerprint, chunk_count, token_count, attempt, reason, kind, warnings = row
    return DocumentRecord(
        document_id,
        item_uri,
        DocumentState(state),
        fingerprint,
        chunk_count,
        token_count,
        attempt,
        reason,
        kind,
        tuple(json.loads(warnings)),
    )


def record_row(run_id: str, record: DocumentRecord) -> Row:
    """Writes a row of the documents' table."""
    return (
        run_id,
        record.document_id,
        record.item_uri,
        record.state.value,
        record.fingerprint,
        record.chunk_count,
        record.token_count,
        record.attempt,
        record.reason,
        record.kind,
        json.dumps(record.warnings, ensure_ascii=False),
    )


def failure_of(row: Row) -> Failure:
    """Reads a row of `FAILURE`."""
    run_id, item_uri, document_id, name, reason, kind, attempt, failed_at = row
    return Failure(run_id, item_uri, document_id, name, reason, kind, attempt, _time(failed_at))


def _time(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _counts(connection: sqlite3.Connection, run_id: str) -> Mapping[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = {"item": {}, "document": {}, "failure": {}}
    for kind, name, count in connection.execute("SELECT kind, name, count FROM counts WHERE run_id = ?", (run_id,)):
        counts[kind][name] = count
    return counts
