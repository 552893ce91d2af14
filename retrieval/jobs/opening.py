"""Opens what a run is carried out with: its source, parsers and target, within what the settings allow."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from encoders.cpu import usable_cpus
from indexers.errors import JobError
from indexers.jobs.index_target import IndexTarget
from indexers.jobs.running.parts import ItemsOf, RunParts
from indexers.jobs.running.reaching import Reaching
from indexers.jobs.state import JobKey, Run
from indexers.jobs.store import JobStore
from indexers.jobs.target import Target
from indexers.sandbox.pool import ParserPool, SandboxLimits
from indexers.sources.access import SourceAccess
from indexers.sources.open import open_source
from retrieval.enrichment.open import enricher_of
from retrieval.identity import DEFAULT_TENANT
from retrieval.jobs.bounds import submitted_access
from retrieval.jobs.local_target import chunking_of, local_target
from retrieval.jobs.remote_target import Connection, RemoteTarget
from retrieval.server.endpoint_file import running_server
from retrieval.settings import Settings

FOLDER = "_jobs"  # no tenant can be called so
SCRATCH = "source"
_PATIENCE_S = 600.0  # with a server that starts again


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Where a worker stands: its settings, the server that it was told of, and its key."""

    settings: Settings
    server: str = ""
    api_key: str = ""
    foreground: bool = False  # a person waits, and may hold the data folder for as long as that takes

    @property
    def opens(self) -> bool:
        """Whether the worker writes by itself: to a Qdrant server, or to a data folder that no server holds.

        A worker that waits for work in the background never takes a data folder: the server that serves it may just be
        starting again, and would find it locked.
        """
        return self.address() is None and (self.foreground or self.settings.index.kind == "qdrant")

    def address(self) -> str | None:
        """Returns where the server is now; None when there is none."""
        return self.server or running_server(self.settings.data.folder)

    @property
    def tenant(self) -> str:
        """Whose runs the worker may carry out: those of its key behind a server, all when it opens the data itself."""
        if self.opens:
            return ""
        digest = hashlib.sha256(self.api_key.encode()).hexdigest()
        return next((key.tenant for key in self.settings.auth.keys if key.sha256 == digest), DEFAULT_TENANT)


def job_folder(settings: Settings, key: JobKey) -> Path:
    """Returns where a job keeps what it knows on this machine."""
    return settings.data.folder / FOLDER / key.tenant / key.name


@asynccontextmanager
async def run_parts(here: Surroundings, store: JobStore, run: Run, worker: str) -> AsyncIterator[RunParts]:
    """Opens everything that a run needs in this process, and closes it.

    Raises:
        ItemUnreadable: the source is not allowed, or a secret is not there.
        TargetUnavailable, JobError: the server cannot be reached, or refuses.
        DataFolderLocked: another process holds the data folder.
    """
    settings, spec = here.settings, run.spec
    folder = job_folder(settings, run.key)
    folder.mkdir(parents=True, exist_ok=True)
    async with AsyncExitStack() as stack:
        access = SourceAccess() if run.request.trusted else submitted_access(settings.jobs)
        source = open_source(spec.source, Path(run.base_folder or "."), access, folder / SCRATCH)
        stack.callback(source.close)
        processes = spec.limits.parsers or max(1, usable_cpus() // 2)
        parsing = spec.parsing
        parsers = ParserPool(SandboxLimits(parsing.timeout_s, parsing.max_memory_bytes), processes)
        stack.callback(parsers.close)
        target = await stack.enter_async_context(_target(here, run))
        enricher = await stack.enter_async_context(enricher_of(settings, run, store, target.fields))
        items_of = stack.enter_context(_on_cluster(here, run, access, target)) if spec.engine == "ray" else None
        yield RunParts(
            store=store,
            source=source,
            parsers=parsers,
            target=target,
            folder=folder,
            worker=worker,
            lease_s=settings.jobs.lease_s,
            items_per_lease=settings.jobs.items_per_lease,
            readers=processes + 1,
            enricher=enricher,
            items_of=items_of,
        )


@contextmanager
def _on_cluster(here: Surroundings, run: Run, access: SourceAccess, target: Target) -> Iterator[ItemsOf]:
    """Joins the Ray cluster that works on the items.

    Raises:
        JobError: Ray is not there, or a server holds the data folder, so that this process cannot write.
    """
    from retrieval.jobs.ray.cluster import cluster  # noqa: PLC0415 - of the extra `ray`
    from retrieval.jobs.ray.stages import StageOptions  # noqa: PLC0415
    from retrieval.jobs.ray.working import RayItems  # noqa: PLC0415

    settings, spec = here.settings, run.spec
    if not isinstance(target, IndexTarget):
        raise JobError('engine = "ray" writes by itself: stop the server of the data folder, or use a Qdrant server')
    if spec.enrich:
        raise JobError('engine = "ray" has no enrichment; use engine = "local" for this job')
    with cluster(settings.jobs.ray_address, usable_cpus()) as joined:
        options = StageOptions(
            settings, spec, run.base_folder, access, chunking_of(spec.chunking), target.definition, target.shaping
        )
        yield lambda parts, claimed, collected: RayItems(parts, claimed, joined, options, collected)


@asynccontextmanager
async def _target(here: Surroundings, run: Run) -> AsyncIterator[Target]:
    if here.opens:
        async with local_target(here.settings, run.key.tenant, run.spec) as target:
            yield target
        return
    address: Callable[[], str | None] = here.address
    connection = Connection(address, here.api_key)
    try:
        remote = RemoteTarget(connection, run.spec.collection, run.spec.chunking)
        await Reaching(_PATIENCE_S).reach(partial(remote.open, run.spec))
        yield remote
    finally:
        await connection.close()
