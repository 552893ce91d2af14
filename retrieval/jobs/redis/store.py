"""The JobStore in Redis, for servers and workers on several machines.

Every method is one script on the keys of one job, which Redis runs whole or not at all; those that look at all jobs ask
each by itself. Leases go by the clock of the Redis server, so machines need not agree on the time.

What an acknowledged call has changed is as safe as the server keeps it: `appendonly yes` with `appendfsync everysec`
loses a second at most in a crash, and a failover what was not replicated. What is lost costs work, not documents: the
index is the truth. The keys have no expiry, so `maxmemory-policy` must be `noeviction` or one of `volatile-...`, also
where the cache is on the same server: `allkeys-...` would throw away parts of the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from indexers.errors import JobNotFound, RunNotFound
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
from retrieval.caching.redis.options import RedisOptions
from retrieval.jobs.redis import job_scripts, row_scripts
from retrieval.jobs.redis.calls import CALL_S, JobCalls, told_run
from retrieval.jobs.redis.values import (
    failure_of,
    fence_of,
    job_arguments,
    job_of,
    lease_of,
    outcome_arguments,
    record_arguments,
    record_of,
    ref_arguments,
    request_json,
    run_of,
)

_CANCELLED = "was cancelled before anybody worked on it"


class RedisJobStore:
    """Jobs, runs, items and documents on a Redis server, behind Sentinels, or on a cluster."""

    def __init__(
        self, options: RedisOptions, now: Callable[[], float] | None = None, call_limit_s: float = CALL_S
    ) -> None:
        """Opens no connection. `now` gives seconds since the epoch; without it Redis does.

        Raises:
            RedisOptionsError: when a certificate cannot be read.
        """
        self._calls = JobCalls(options, call_limit_s)
        self._now = now

    async def put_job(self, job: Job) -> None:
        """Declares a job, or declares it anew."""
        with self._calls.errors():
            await self._calls.index.add_job(job.key)
            await self._calls.of_job(job_scripts.PUT_JOB, job.key, *job_arguments(job))

    async def get_job(self, key: JobKey) -> Job:
        """Returns a job. Raises: JobNotFound."""
        with self._calls.errors():
            found = job_of(key, await self._calls.of_job(job_scripts.GET_JOB, key))
        if found is None:
            raise JobNotFound(key.name)
        return found

    async def list_jobs(self, tenant: str = "") -> list[Job]:
        """Returns jobs by name."""
        with self._calls.errors():
            keys = await self._calls.index.jobs(tenant)
            replies = await self._calls.of_jobs(job_scripts.GET_JOB, keys)
        found = [job_of(key, reply) for key, reply in zip(keys, replies, strict=True)]
        return [job for job in found if job is not None]

    async def remove_job(self, key: JobKey) -> None:
        """Forgets a job with its runs. Raises: JobNotFound, RunActive."""
        with self._calls.errors():
            reply = await self._calls.of_job(job_scripts.REMOVE_JOB, key)
            if reply[0] != b"removed":
                told_run(key, "", reply)
            await self._calls.index.remove_runs([one.decode() for one in reply[1:]])

    async def submit(self, key: JobKey, request: RunRequest) -> Run:
        """Queues a run. Raises: JobNotFound, RunActive, JobError when there is nothing to try again."""
        with self._calls.errors():
            run_id = await self._calls.index.new_run(key, self._now() if self._now else None)
            values = (run_id, request_json(request), int(request.only_failures), self._moment())
            reply = await self._calls.of_job(job_scripts.SUBMIT, key, *values)
            if reply[0] != b"queued":
                await self._calls.index.remove_runs([run_id])
        return told_run(key, run_id if reply[0] == b"queued" else "", reply)

    async def get_run(self, tenant: str, run_id: str) -> Run:
        """Returns a run. Raises: RunNotFound."""
        with self._calls.errors():
            key = await self._calls.index.job_of(run_id)
            reply = await self._calls.of_job(job_scripts.GET_RUN, key, run_id)
        if key.tenant != tenant or not reply:
            raise RunNotFound(run_id)
        return run_of(key, run_id, reply)

    async def list_runs(self, tenant: str, job: str = "", limit: int = 100, before: str = "") -> list[Run]:
        """Returns runs, newest first."""
        with self._calls.errors():
            keys = [key for key in await self._calls.index.jobs(tenant) if job in ("", key.name)]
            listed = await self._calls.of_jobs(job_scripts.LIST_RUNS, keys, before, limit)
            ids = [(one.decode(), key) for key, found in zip(keys, listed, strict=True) for one in found]
            newest = [(key, run_id) for run_id, key in sorted(ids, reverse=True)[:limit]]
            replies = await self._calls.of_runs(job_scripts.GET_RUN, newest)
        return [run_of(*run, reply) for run, reply in zip(newest, replies, strict=True) if reply]

    async def claim_run(self, worker: str, lease_s: float, tenant: str = "", run_id: str = "") -> RunClaim | None:
        """Claims the oldest run that is queued, or whose claim has lapsed."""
        with self._calls.errors():
            keys = await self._calls.index.jobs(tenant)
            replies = await self._calls.of_jobs(job_scripts.ACTIVE, keys)
            for found, key in sorted((one.decode(), key) for key, one in zip(keys, replies, strict=True)):
                if not found or run_id not in ("", found):
                    continue
                values = (found, worker, f"{lease_s:.6f}", self._moment())
                reply = await self._calls.of_job(job_scripts.CLAIM, key, *values)
                if reply[0] == b"claimed":
                    return RunClaim(run_of(key, found, reply[1]), worker, fence_of(reply[1]))
        return None

    async def renew_run(self, claim: RunClaim, lease_s: float) -> Run:
        """Prolongs the claim and returns the run as it stands. Raises: LeaseLost."""
        with self._calls.errors():
            reply = await self._calls.of_claim(job_scripts.RENEW_RUN, claim, f"{lease_s:.6f}", self._moment())
        return told_run(claim.run.key, claim.run.run_id, reply)

    async def mark_scanned(self, claim: RunClaim) -> None:
        """Notes that the scan is through. Raises: LeaseLost."""
        with self._calls.errors():
            await self._calls.of_claim(job_scripts.MARK_SCANNED, claim)

    async def end_run(self, claim: RunClaim, state: RunState, reason: str, report: str) -> Run:
        """Ends the run and drops what is left of its queue. Raises: LeaseLost."""
        whole = state in (RunState.SUCCEEDED, RunState.PARTIAL) and not claim.run.request.only_failures
        with self._calls.errors():
            values = (state.value, reason, report, int(whole), self._moment())
            reply = await self._calls.of_claim(job_scripts.END_RUN, claim, *values)
        return told_run(claim.run.key, claim.run.run_id, reply)

    async def cancel_run(self, tenant: str, run_id: str) -> Run:
        """Asks the run to stop. Raises: RunNotFound."""
        with self._calls.errors():
            key = await self._calls.index.job_of(run_id)
            if key.tenant != tenant:
                raise RunNotFound(run_id)
            reply = await self._calls.of_job(job_scripts.CANCEL, key, run_id, _CANCELLED, self._moment())
        return told_run(key, run_id, reply)

    async def offer(self, claim: RunClaim, refs: Sequence[ItemRef]) -> None:
        """Queues items that the run does not have yet. Raises: LeaseLost."""
        with self._calls.errors():
            await self._calls.of_claim(row_scripts.OFFER, claim, *ref_arguments(refs))

    async def fail_scanned(self, claim: RunClaim, uri: str, name: str, outcome: ItemOutcome) -> None:
        """Notes what the scan could not list, or leaves out. Raises: LeaseLost."""
        with self._calls.errors():
            values = (uri, name, outcome.state.value, outcome.reason, outcome.kind, self._moment())
            await self._calls.of_claim(row_scripts.NOTE_SCANNED, claim, *values)

    async def lease_items(
        self, run_id: str, worker: str, limit: int, lease_s: float, *, attempts: int = 100
    ) -> list[ItemLease]:
        """Leases items that are due, oldest first, and those whose lease has lapsed."""
        if limit < 1:
            return []
        with self._calls.errors():
            values = (worker, limit, attempts, f"{lease_s:.6f}", self._moment())
            reply = await self._calls.of_run(row_scripts.LEASE, run_id, *values)
            if not reply:
                return []
            key = await self._calls.index.job_of(run_id)
        return [lease_of(key, run_id, worker, one) for one in reply]

    async def renew_items(self, leases: Sequence[ItemLease], lease_s: float) -> list[ItemLease]:
        """Prolongs leases and returns those that are still held."""
        held: list[ItemLease] = []
        with self._calls.errors():
            for run_id in dict.fromkeys(one.run_id for one in leases):
                ours = [one for one in leases if one.run_id == run_id]
                named = [value for one in ours for value in (one.uri, one.fence)]
                values = (f"{lease_s:.6f}", self._moment(), *named)
                found = await self._calls.of_run(row_scripts.RENEW_ITEMS, run_id, *values)
                held += [ours[number] for number in found or ()]
        return held

    async def settle(self, settled: Sequence[tuple[ItemLease, ItemOutcome]]) -> list[ItemLease]:
        """Ends leases and returns those that were no longer held; the leases of one run whole, if of several."""
        lost: list[ItemLease] = []
        with self._calls.errors():
            for run_id in dict.fromkeys(lease.run_id for lease, _ in settled):
                ours = [one for one in settled if one[0].run_id == run_id]
                outcomes = [value for one in ours for value in outcome_arguments(*one)]
                found = await self._calls.of_run(row_scripts.SETTLE, run_id, self._moment(), *outcomes)
                lost += [lease for lease, _ in ours] if found is None else [ours[number][0] for number in found]
        return lost

    async def record(self, run_id: str, worker: str, documents: Sequence[DocumentRecord]) -> None:
        """Notes the states of documents."""
        with self._calls.errors():
            values = [value for one in documents for value in record_arguments(one)]
            await self._calls.of_run(row_scripts.RECORD, run_id, worker, self._moment(), *values)

    async def seen(self, run_id: str, document_ids: Sequence[str]) -> set[str]:
        """Returns which of the documents have come by in the run."""
        with self._calls.errors():
            found = await self._calls.of_run(row_scripts.SEEN, run_id, *document_ids)
        return {document_ids[number] for number in found or ()}

    async def failed_items(self, run_id: str) -> list[str]:
        """Returns the items of which nothing is known."""
        with self._calls.errors():
            found = await self._calls.of_run(row_scripts.FAILED_ITEMS, run_id)
        return sorted(uri.decode() for uri in found or ())

    async def documents(
        self, run_id: str, states: Sequence[DocumentState] = (), after: str = "", limit: int = 1_000
    ) -> list[DocumentRecord]:
        """Returns documents of a run by id."""
        with self._calls.errors():
            values = [state.value for state in dict.fromkeys(states or DocumentState)]
            found = await self._calls.of_run(row_scripts.DOCUMENTS, run_id, after, limit, *values)
        return sorted(map(record_of, found or ()), key=lambda one: one.document_id)[:limit]

    async def failures(self, key: JobKey, after: str = "", limit: int = 1_000) -> list[Failure]:
        """Returns the dead letters of the job."""
        with self._calls.errors():
            found = await self._calls.of_job(job_scripts.FAILURES, key, after, limit)
        return [failure_of(one) for one in found]

    async def next_due_s(self, run_id: str) -> float | None:
        """Returns in how many seconds something can be leased; None when nothing is left."""
        with self._calls.errors():
            found = await self._calls.of_run(row_scripts.NEXT_DUE, run_id, self._moment())
        return float(found) if found else None

    async def release(self, worker: str, *, died: bool = False) -> None:
        """Gives back at once all that a worker holds; the items of one job at a time."""
        with self._calls.errors():
            keys = await self._calls.index.jobs("")
            await self._calls.of_jobs(job_scripts.RELEASE, keys, worker, int(died), self._moment())

    async def holders(self) -> set[str]:
        """Returns the workers that hold a run or an item."""
        with self._calls.errors():
            replies = await self._calls.of_jobs(job_scripts.HOLDERS, await self._calls.index.jobs(""))
        return {worker.decode() for reply in replies for worker in reply if worker}

    async def remember(self, key: JobKey, name: str, value: bytes) -> None:
        """Keeps a value of a job under a name; an empty one removes it."""
        with self._calls.errors():
            await self._calls.of_job(job_scripts.REMEMBER, key, name, value)

    async def recall(self, key: JobKey, names: Sequence[str]) -> dict[str, bytes]:
        """Returns what is remembered under the names."""
        with self._calls.errors():
            found = await self._calls.of_job(job_scripts.RECALL, key, *names)
        return {name: value for name, value in zip(names, found, strict=True) if value}

    async def prune(self, key: JobKey, keep_runs: int) -> None:
        """Forgets the items and documents of all but the newest runs."""
        with self._calls.errors():
            await self._calls.of_job(job_scripts.PRUNE, key, max(1, keep_runs))

    async def close(self) -> None:
        """Closes all connections; a second call does nothing."""
        await self._calls.close()

    def _moment(self) -> str:
        """Returns the moment that scripts go by; empty for the server's own."""
        return "" if self._now is None else f"{self._now():.6f}"
