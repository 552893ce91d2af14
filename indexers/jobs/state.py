"""The values of jobs, runs, items and documents as they are stored and shown.

A *job* is a declaration. A *run* carries it out once. An *item* is what a source lists and a worker leases: a file, a
page, a block of rows. A *document* comes out of an item.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from indexers.jobs.spec import JobSpec


class RunState(enum.Enum):
    """Where a run stands."""

    QUEUED = "queued"
    RUNNING = "running"
    WAITING = "waiting"  # stopped before deleting much more than usual; ends when asked for again or cancelled
    SUCCEEDED = "succeeded"
    PARTIAL = "partial"  # whole, but some documents failed and are named
    FAILED = "failed"
    CANCELLED = "cancelled"

    @property
    def ended(self) -> bool:
        """Whether nothing more happens in the run."""
        return self not in (RunState.QUEUED, RunState.RUNNING)


class ItemState(enum.Enum):
    """Where an item of a run stands."""

    QUEUED = "queued"  # also after a transient failure, until `not_before`
    LEASED = "leased"
    DONE = "done"
    SKIPPED = "skipped"
    FAILED = "failed"  # for good: a dead letter


class DocumentState(enum.Enum):
    """Where a document stands in a run."""

    SEEN = "seen"
    PARSED = "parsed"
    EMBEDDED = "embedded"
    WRITTEN = "written"  # acknowledged by the index
    VERIFIED = "verified"  # read back: the stored fingerprint and number of chunks are right
    UNCHANGED = "unchanged"  # stored already as it is, read back by its fingerprint
    SKIPPED = "skipped"  # on purpose, with a reason
    FAILED = "failed"
    DELETING = "deleting"  # tombstone: decided and durable, not yet proven
    DELETED = "deleted"  # proven: neither the document nor a chunk of it can be read


@dataclass(frozen=True, slots=True, order=True)
class JobKey:
    """Names a job; the tenant comes from the credential."""

    tenant: str
    name: str


@dataclass(frozen=True, slots=True)
class Job:
    """A job as it was declared last."""

    key: JobKey
    spec: JobSpec
    base_folder: str  # what relative paths in it start from
    updated_at: datetime
    paused: bool = False  # whether its schedule rests


@dataclass(frozen=True, slots=True)
class RunRequest:
    """How a run is asked for."""

    allow_shrink: bool = False
    only_failures: bool = False  # offers the dead letters of the runs before and nothing else
    reason: str = ""  # who or what asked: a person, a schedule, a change
    trusted: bool = False  # asked for by whoever owns the data folder, whose jobs read all that he can


@dataclass(frozen=True, slots=True)
class Run:
    """One carrying out of a job. All counts are of distinct documents or items of this run."""

    run_id: str
    key: JobKey
    spec: JobSpec  # as it was when the run was asked for
    base_folder: str
    request: RunRequest
    state: RunState
    created_at: datetime
    started_at: datetime | None = None
    ended_at: datetime | None = None
    cancel_requested: bool = False
    reason: str = ""  # of FAILED, WAITING and CANCELLED, for people
    scanned: bool = False  # whether the scan is through, so that item counts are whole
    items: Mapping[ItemState, int] = field(default_factory=dict)
    documents: Mapping[DocumentState, int] = field(default_factory=dict)
    chunks: int = 0  # written
    tokens: int = 0  # encoded
    failures: Mapping[str, int] = field(default_factory=dict)  # by `Failure.kind`
    worker: str = ""  # that coordinates it
    report: str = ""  # JSON of the final report; empty until the end


@dataclass(frozen=True, slots=True)
class RunClaim:
    """A worker's right to coordinate a run, until it lapses."""

    run: Run
    worker: str
    fence: int  # rises with each claim of the run; calls with an older one are refused


@dataclass(frozen=True, slots=True)
class ItemLease:
    """A worker's right to an item, until it lapses."""

    run_id: str
    key: JobKey
    uri: str
    name: str
    fingerprint: str
    size_bytes: int
    worker: str
    fence: int  # rises with each lease of the item
    attempt: int  # from 1


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """What became of a leased item."""

    state: ItemState  # DONE, SKIPPED, FAILED, or QUEUED to try again
    reason: str = ""
    kind: str = ""  # of a failure: a short constant word that metrics count by
    retry_in_s: float = 0.0  # with QUEUED


@dataclass(frozen=True, slots=True)
class DocumentRecord:
    """What is known of a document in a run."""

    document_id: str
    item_uri: str
    state: DocumentState
    fingerprint: str = ""
    chunk_count: int = 0
    token_count: int = 0
    attempt: int = 1
    reason: str = ""
    kind: str = ""
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """A dead letter: an item, or one document of it, that was given up."""

    run_id: str
    item_uri: str
    document_id: str  # empty when the whole item failed
    name: str
    reason: str
    kind: str
    attempt: int
    failed_at: datetime
