"""Where the contract of the job store is tried: one file, a real Redis server, and a cluster; with a clock to move."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from indexers.jobs.sqlite.store import SqliteJobStore
from indexers.jobs.state import DocumentRecord, DocumentState, Job, JobKey, Run, RunClaim, RunRequest
from indexers.jobs.store import JobStore
from indexers.sources.source import ItemRef
from retrieval.caching.redis.options import RedisOptions, options_from_url
from retrieval.jobs.redis.store import RedisJobStore
from tests.fakes.job_rigs import spec_of
from tests.fakes.redis_server import HOST, RedisServer, running_cluster

KEY = JobKey("acme", "handbook")
LEASE_S = 30.0
_prefixes = (f"j{number}" for number in count())

OpenStore = Callable[[Path, "Clock"], JobStore]


class Clock:
    """Seconds since the epoch, which a test moves."""

    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now

    def pass_s(self, seconds: float) -> None:
        """Moves the clock."""
        self.now += seconds


@contextmanager
def sqlite_place() -> Iterator[OpenStore]:
    """Opens the store of a file."""
    yield lambda folder, clock: SqliteJobStore(folder / "jobs.sqlite", clock)


@contextmanager
def redis_place() -> Iterator[OpenStore]:
    """Opens a store on one server."""
    with RedisServer() as server:
        options = options_from_url(server.url)
        yield lambda folder, clock: RedisJobStore(fresh(options, folder), clock)


@contextmanager
def cluster_place() -> Iterator[OpenStore]:
    """Opens a store on three primaries."""
    with running_cluster() as nodes:
        options = options_from_url(f"redis+cluster://{HOST}:{nodes[0].port},{HOST}:{nodes[1].port}")
        yield lambda folder, clock: RedisJobStore(fresh(options, folder), clock)


def fresh(options: RedisOptions, folder: Path) -> RedisOptions:
    """Returns options whose keys are the folder's own: two stores of one folder share them, as they would a file."""
    mark = folder / "prefix"
    if not mark.exists():
        mark.write_text(next(_prefixes))
    return replace(options, key_prefix=mark.read_text(), connect_timeout_ms=5000.0)


PLACES = {"sqlite": sqlite_place, "redis": redis_place, "cluster": cluster_place}


@asynccontextmanager
async def opened(store: JobStore) -> AsyncIterator[JobStore]:
    """Closes the store at the end."""
    try:
        yield store
    finally:
        await store.close()


@dataclass(frozen=True)
class Queue:
    """A store with one declared job, and what tests do with it."""

    store: JobStore
    clock: Clock

    async def declare(self, key: JobKey = KEY) -> Job:
        """Declares a job."""
        job = Job(key, spec_of(name=key.name), "/base", datetime(2026, 1, 1, tzinfo=UTC))
        await self.store.put_job(job)
        return job

    async def start(self, names: Sequence[str] = (), worker: str = "w1", request: RunRequest | None = None) -> RunClaim:
        """Queues and claims a run, and offers items."""
        run = await self.store.submit(KEY, request or RunRequest())
        claim = await self.store.claim_run(worker, LEASE_S, run_id=run.run_id)
        assert claim is not None
        if names:
            await self.store.offer(claim, [item(name) for name in names])
        return claim

    async def run(self, claim: RunClaim) -> Run:
        """Returns the run as it stands."""
        return await self.store.get_run(claim.run.key.tenant, claim.run.run_id)


def item(name: str) -> ItemRef:
    """Returns an item of that name."""
    return ItemRef(f"file:///{name}", name, f"print of {name}", len(name))


def document(
    document_id: str,
    uri: str,
    state: DocumentState = DocumentState.VERIFIED,
    counts: tuple[int, int] = (2, 100),
    kind: str = "",
) -> DocumentRecord:
    """Returns a record with so many chunks and tokens; those that were not written have none."""
    if state not in (DocumentState.WRITTEN, DocumentState.VERIFIED):
        counts = (0, 0)
    return DocumentRecord(document_id, uri, state, "print", *counts, reason=kind and "broken", kind=kind)
