"""The JobStore protocol: the durable queue and state behind jobs.

It is a work list, not the truth: what is indexed is asked of the index. A store that is lost costs the queue and the
history, never a document. One contract suite runs against SQLite (the default) and Redis. Every method may be called by
several processes at once; a method either happens whole or not at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

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


class JobStore(Protocol):
    """Jobs, runs, items and documents of all tenants; every method takes the tenant, inside a key or by itself.

    Raises everywhere: JobStoreUnavailable when it cannot be reached or is broken.
    """

    async def put_job(self, job: Job) -> None:
        """Declares a job, or declares it anew."""
        ...

    async def get_job(self, key: JobKey) -> Job:
        """Raises: JobNotFound."""
        ...

    async def list_jobs(self, tenant: str = "") -> list[Job]:
        """Returns the tenant's jobs by name; an empty tenant means all tenants', for schedulers."""
        ...

    async def remove_job(self, key: JobKey) -> None:
        """Forgets a job with its runs; what it has indexed stays. Raises: JobNotFound, RunActive."""
        ...

    async def submit(self, key: JobKey, request: RunRequest) -> Run:
        """Queues a run of the job as it is declared now. Raises: JobNotFound, RunActive when one has not ended."""
        ...

    async def get_run(self, tenant: str, run_id: str) -> Run:
        """Raises: RunNotFound (the same for another tenant's)."""
        ...

    async def list_runs(self, tenant: str, job: str = "", limit: int = 100, before: str = "") -> list[Run]:
        """Returns runs, newest first, of one job or of all; `before` is the last run id of the page before.

        An empty tenant means all tenants', for schedulers and metrics.
        """
        ...

    async def claim_run(self, worker: str, lease_s: float, tenant: str = "", run_id: str = "") -> RunClaim | None:
        """Claims the oldest run that is queued, or whose worker has let its claim lapse; None when there is none.

        `tenant` and `run_id` restrict which; empty means any.
        """
        ...

    async def renew_run(self, claim: RunClaim, lease_s: float) -> Run:
        """Prolongs the claim and returns the run as it stands, with `cancel_requested`. Raises: LeaseLost."""
        ...

    async def mark_scanned(self, claim: RunClaim) -> None:
        """Notes that everything that the source lists was offered. Raises: LeaseLost."""
        ...

    async def end_run(self, claim: RunClaim, state: RunState, reason: str, report: str) -> Run:
        """Ends the run; items that are still queued or leased are dropped. Raises: LeaseLost."""
        ...

    async def cancel_run(self, tenant: str, run_id: str) -> Run:
        """Asks for the run to stop; one that is queued ends at once, an ended one stays. Raises: RunNotFound."""
        ...

    async def offer(self, claim: RunClaim, refs: Sequence[ItemRef]) -> None:
        """Queues items; one that the run has already, in whatever state, stays as it is. Raises: LeaseLost."""
        ...

    async def fail_scanned(self, claim: RunClaim, uri: str, name: str, outcome: ItemOutcome) -> None:
        """Notes what the scan could not list (FAILED) or leaves out (SKIPPED). Raises: LeaseLost."""
        ...

    async def lease_items(
        self, run_id: str, worker: str, limit: int, lease_s: float, *, attempts: int = 100
    ) -> list[ItemLease]:
        """Leases queued items that are due, oldest first, and those whose lease has lapsed.

        An item whose lease has lapsed after its last allowed attempt becomes FAILED (kind `worker_died`) instead: it
        may be what kills workers.
        """
        ...

    async def renew_items(self, leases: Sequence[ItemLease], lease_s: float) -> list[ItemLease]:
        """Prolongs leases and returns those that are still held."""
        ...

    async def settle(self, settled: Sequence[tuple[ItemLease, ItemOutcome]]) -> list[ItemLease]:
        """Ends leases, each with its outcome, and returns those that were no longer held, for which nothing is done."""
        ...

    async def record(self, run_id: str, worker: str, documents: Sequence[DocumentRecord]) -> None:
        """Notes the states of documents. The last state counts, once a document; but UNCHANGED never replaces VERIFIED.

        That is so because a document that was written and whose item was then leased anew comes by a second time.
        """
        ...

    async def seen(self, run_id: str, document_ids: Sequence[str]) -> set[str]:
        """Returns which of the documents have come by in the run, in whatever state but DELETING and DELETED."""
        ...

    async def failed_items(self, run_id: str) -> list[str]:
        """Returns the URIs of the run's items that FAILED or were not settled, whose documents are to be kept."""
        ...

    async def documents(
        self, run_id: str, states: Sequence[DocumentState] = (), after: str = "", limit: int = 1_000
    ) -> list[DocumentRecord]:
        """Returns documents of a run by id, of some states or of all."""
        ...

    async def failures(self, key: JobKey, after: str = "", limit: int = 1_000) -> list[Failure]:
        """Returns the dead letters of the job: what failed and has not succeeded since; by item URI and document id.

        `after` is `item_uri` of the last one of the page before.
        """
        ...

    async def next_due_s(self, run_id: str) -> float | None:
        """Returns in how many seconds a queued item is due, or a lease lapses; 0 for now, None when nothing is left."""
        ...

    async def release(self, worker: str, *, died: bool = False) -> None:
        """Gives back at once all that a worker holds, since it has ended.

        With `died`, the attempts that it made count, and an item that was tried as often as it may be becomes FAILED
        (kind `worker_died`): it may be what kills workers.
        """
        ...

    async def holders(self) -> set[str]:
        """Returns the workers that hold a run or an item."""
        ...

    async def remember(self, key: JobKey, name: str, value: bytes) -> None:
        """Keeps a value of a job under a name: a watermark, an enrichment. Empty removes it."""
        ...

    async def recall(self, key: JobKey, names: Sequence[str]) -> dict[str, bytes]:
        """Returns what is remembered under each of the names that is there."""
        ...

    async def prune(self, key: JobKey, keep_runs: int) -> None:
        """Forgets the items and documents of all but the newest runs of the job; dead letters stay."""
        ...

    async def close(self) -> None:
        """Releases files and connections; a second call does nothing."""
        ...
