"""Puts together what migrations are carried out with; a part of the composition root."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import cast

from encoders.open import ScheduledDenseEncoder
from encoders.scheduler import TokenScheduler
from encoders.splade_open import ScheduledSparseEncoder
from encoders.types import AsyncDenseEncoder
from indexers.document_encoding import DocumentEncoder
from indexers.index import Catalog
from indexers.jobs.store import JobStore
from indexers.types import CollectionDefinition, CollectionKey
from retrieval.jobs.local_target import chunking_of
from retrieval.jobs.open import open_job_store
from retrieval.migrating.desk import Means, MigrationDesk
from retrieval.server.encoder_pool import EncoderPool
from retrieval.server.engines import AS_CONFIGURED, Chunking, chunkers_of, write_side
from retrieval.settings import Settings
from retrieval.thresholds import Overrides, resolve

_CUT_AT_ONCE = 8  # documents; a write need not wait until hundreds are cut


class DocumentEncoders:
    """Makes what encodes a collection's documents: as its jobs ask for, and as the settings say."""

    def __init__(
        self, settings: Settings, store: JobStore, scheduler: TokenScheduler, sparse: ScheduledSparseEncoder | None
    ) -> None:
        self._chunker = chunkers_of(settings.chunking)
        self._store = store
        self._scheduler = scheduler
        self._sparse = sparse

    async def __call__(
        self, key: CollectionKey, definition: CollectionDefinition, encoder: AsyncDenseEncoder
    ) -> tuple[dict[str, DocumentEncoder], DocumentEncoder]:
        """Returns those of jobs, by name, and that of everything else.

        Raises:
            JobStoreUnavailable: the jobs cannot be asked for.
        """
        opened = cast("ScheduledDenseEncoder", encoder)  # the pool's

        def made(chunking: Chunking) -> DocumentEncoder:
            chunker = self._chunker(opened, chunking)
            threads = self._scheduler.bulk_threads
            return DocumentEncoder(definition, opened, chunker, threads, self._sparse, at_once=_CUT_AT_ONCE)

        jobs = [job for job in await self._store.list_jobs(key.tenant) if job.spec.collection == key.collection]
        return {job.key.name: made(chunking_of(job.spec.chunking)) for job in jobs}, made(AS_CONFIGURED)


@asynccontextmanager
async def local_migrations(settings: Settings) -> AsyncIterator[MigrationDesk]:
    """Opens the data folder, or the Qdrant server, for migrations without a server of ours.

    Raises:
        DataFolderLocked: a server, or another run, holds the data folder.
        ModelError: the configured encoder cannot be used.
    """
    store = open_job_store(settings)
    try:
        async with write_side(settings) as side:
            documents = DocumentEncoders(settings, store, side.scheduler, side.sparse)
            desk = migration_desk(lambda: settings, side.catalog, side.encoders, documents, side.sparse, _keeps_nothing)
            async with desk as opened:
                yield opened
    finally:
        await store.close()


async def _keeps_nothing(key: CollectionKey) -> None:
    """Has no caches."""


@asynccontextmanager
async def migration_desk(
    settings: Callable[[], Settings],
    catalog: Catalog,
    encoders: EncoderPool,
    documents: DocumentEncoders,
    sparse: ScheduledSparseEncoder | None,
    moved: Callable[[CollectionKey], Awaitable[None]],
) -> AsyncIterator[MigrationDesk]:
    """Opens the desk of a process, and stops what runs when it closes; `moved` is told of collections that moved."""
    thresholds = lambda: resolve(settings(), Overrides())  # noqa: E731
    desk = MigrationDesk(Means(catalog, encoders, documents, sparse, thresholds, moved))
    try:
        yield desk
    finally:
        await desk.close()
