"""Replies of scripts to values, and values to arguments of scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, TypeAlias

from indexers.jobs.spec import JobSpec
from indexers.jobs.state import (
    DocumentRecord,
    DocumentState,
    Failure,
    ItemLease,
    ItemOutcome,
    ItemState,
    Job,
    JobKey,
    Run,
    RunRequest,
    RunState,
)
from indexers.sources.source import ItemRef
from retrieval.caching.redis.scripting import Value

Reply: TypeAlias = Any  # bytes, int or a list of them, as the scripts of this package give


def job_arguments(job: Job) -> tuple[Value, ...]:
    """Writes a declaration."""
    return (job.spec.model_dump_json(), job.base_folder, f"{job.updated_at.timestamp():.6f}", int(job.paused))


def job_of(key: JobKey, reply: Reply) -> Job | None:
    """Reads a declaration; None when there is none."""
    spec, base_folder, updated_at, paused = reply
    if spec is None:
        return None
    return Job(key, JobSpec.model_validate_json(spec), base_folder.decode(), _time(updated_at), paused == b"1")


def request_json(request: RunRequest) -> str:
    """Writes how a run is asked for."""
    return json.dumps(asdict(request))


def run_of(key: JobKey, run_id: str, reply: Reply) -> Run:
    """Reads a run from all fields of its hash."""
    texts = {name.decode(): value.decode() for name, value in zip(reply[::2], reply[1::2], strict=True)}
    started, ended = texts.get("started_at"), texts.get("ended_at")
    return Run(
        run_id,
        key,
        JobSpec.model_validate_json(texts["spec"]),
        texts["base_folder"],
        RunRequest(**json.loads(texts["request"])),
        RunState(texts["state"]),
        _time(texts["created_at"]),
        None if started is None else _time(started),
        None if ended is None else _time(ended),
        texts.get("cancel_requested") == "1",
        texts.get("reason", ""),
        texts["scanned"] == "1",
        {ItemState(name): count for name, count in _counts(texts, "item:")},
        {DocumentState(name): count for name, count in _counts(texts, "document:")},
        int(texts.get("chunks", 0)),
        int(texts.get("tokens", 0)),
        dict(_counts(texts, "failure:")),
        texts.get("worker", ""),
        texts.get("report", ""),
    )


def fence_of(reply: Reply) -> int:
    """Reads a run's fence from all fields of its hash."""
    return int(reply[reply.index(b"fence") + 1])


def ref_arguments(refs: Sequence[ItemRef]) -> Iterator[Value]:
    """Writes items that are offered."""
    for one in refs:
        yield from (one.uri, one.name, one.fingerprint, one.size_bytes)


def lease_of(key: JobKey, run_id: str, worker: str, reply: Reply) -> ItemLease:
    """Reads a lease."""
    uri, name, fingerprint, size_bytes, fence, attempt = reply
    texts = (uri.decode(), name.decode(), fingerprint.decode())
    return ItemLease(run_id, key, *texts, int(size_bytes), worker, fence, attempt)


def outcome_arguments(lease: ItemLease, outcome: ItemOutcome) -> tuple[Value, ...]:
    """Writes what becomes of a lease."""
    return (lease.uri, lease.fence, outcome.state.value, outcome.reason, outcome.kind, f"{outcome.retry_in_s:.6f}")


def record_arguments(one: DocumentRecord) -> tuple[Value, ...]:
    """Writes what is known of a document."""
    return (
        one.document_id,
        one.item_uri,
        one.state.value,
        one.fingerprint,
        one.chunk_count,
        one.token_count,
        one.attempt,
        one.reason,
        one.kind,
        json.dumps(one.warnings, ensure_ascii=False),
    )


def record_of(reply: Reply) -> DocumentRecord:
    """Reads what is known of a document."""
    document_id, uri, state, fingerprint, chunks, tokens, attempt, reason, kind, warnings = (
        one.decode() for one in reply
    )
    return DocumentRecord(
        document_id,
        uri,
        DocumentState(state),
        fingerprint,
        int(chunks),
        int(tokens),
        int(attempt),
        reason,
        kind,
        tuple(json.loads(warnings)),
    )


def failure_of(reply: Reply) -> Failure:
    """Reads a dead letter."""
    uri, document_id, run_id, name, reason, kind, attempt, failed_at = reply
    return Failure(
        run_id.decode(),
        uri.decode(),
        document_id.decode(),
        name.decode(),
        reason.decode(),
        kind.decode(),
        int(attempt),
        _time(failed_at),
    )


def _time(seconds: str | bytes) -> datetime:
    return datetime.fromtimestamp(float(seconds), UTC)


def _counts(texts: Mapping[str, str], start: str) -> Iterator[tuple[str, int]]:
    for name, value in texts.items():
        if name.startswith(start) and (count := int(value)):
            yield name.removeprefix(start), count
