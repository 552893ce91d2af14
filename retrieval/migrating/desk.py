"""Carries migrations out, one of a collection at a time, and tells whoever watches how far they are.

A migration belongs to this process and to no caller: whoever leaves stops watching, and the migration goes on. When the
process ends, what was encoded stays, and asking again goes on with it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Protocol

import structlog

from encoders.sparse import AsyncSparseEncoder
from encoders.types import AsyncDenseEncoder
from indexers.definition import is_of
from indexers.document_encoding import DocumentEncoder
from indexers.errors import BuildFailed, ModelMismatch
from indexers.index import Catalog, Index
from indexers.migrating.migration import Built, Destination, Migration, Standing, described
from indexers.migrating.searched import SearchedIndex
from indexers.options import DenseModel
from indexers.types import CollectionDefinition, CollectionKey
from retrieval.errors import MigrationActive, MigrationRefused
from retrieval.migrating.checking import Asker, judge
from retrieval.migrating.encoding import ByOwner
from retrieval.migrating.types import CheckReport, MigrationState, Step, Wanted
from retrieval.types import Thresholds

_log = structlog.get_logger("headrace")


class Models(Protocol):
    """Where encoders are."""

    async def open_model(self, source: str) -> tuple[AsyncDenseEncoder, DenseModel, str]:
        """Returns an encoder, its model, and how a collection is to name it.

        Raises:
            ModelError: it cannot be used.
        """
        ...

    def of(self, definition: CollectionDefinition) -> AsyncDenseEncoder:
        """Returns the encoder of a collection that was opened."""
        ...


class EncodersOf(Protocol):
    """Makes what encodes a collection's documents."""

    async def __call__(
        self, key: CollectionKey, definition: CollectionDefinition, encoder: AsyncDenseEncoder
    ) -> tuple[dict[str, DocumentEncoder], DocumentEncoder]:
        """Returns those of jobs that ask for chunks of their own, by the job's name, and that of everything else.

        Raises:
            JobStoreUnavailable: the jobs cannot be asked for.
        """
        ...


@dataclass(frozen=True, slots=True)
class Means:
    """What migrations are carried out with."""

    catalog: Catalog
    models: Models
    encoders_of: EncodersOf
    sparse: AsyncSparseEncoder | None
    thresholds: Callable[[], Thresholds]
    moved: Callable[[CollectionKey], Awaitable[None]]
    """Is told when a collection has moved, to free what is kept under keys that nobody asks for any more."""


class MigrationDesk:
    """The migrations of one process."""

    def __init__(self, means: Means) -> None:
        self._means = means
        self._running: dict[CollectionKey, _Running] = {}

    async def standing(self, key: CollectionKey) -> tuple[Standing, MigrationState | None]:
        """Returns of which models a collection is, and the migration under way or the last one here.

        Raises:
            CollectionNotFound: there is none of that name.
        """
        standing = await self._means.catalog.migration(key).standing()
        running = self._running.get(key)
        return standing, None if running is None else running.state

    async def migrate(self, key: CollectionKey, wanted: Wanted) -> AsyncGenerator[MigrationState, None]:
        """Moves a collection to a model, or watches the migration to it that is under way; yields until it has ended.

        Raises:
            CollectionNotFound: there is none of that name.
            MigrationActive: another one of the collection is under way.
            MigrationRefused, ModelError, BuildFailed: why it has ended; it serves as before.
            IndexUnavailable, JobStoreUnavailable: likewise; asked again it may go on.
        """
        running = self._running.get(key)
        if running is None or running.state.step.ended:
            migration = self._means.catalog.migration(key)
            running = self._running[key] = _Running(key, wanted, migration, self._means)
        elif running.wanted != wanted:
            raise MigrationActive(key.collection, running.state.model)
        shown: MigrationState | None = None
        while shown is None or not shown.step.ended:
            changed = running.changed
            if running.state == shown:
                await changed.wait()
                continue
            shown = running.state
            yield shown
        if shown.error is not None:
            raise shown.error

    async def cancel(self, key: CollectionKey) -> None:
        """Stops a migration and removes what was begun, also by an earlier process.

        Raises:
            CollectionNotFound: there is none of that name.
        """
        running = self._running.get(key)
        if running is not None:
            await running.stop()
        await self._means.catalog.migration(key).cancel()

    async def forget(self, key: CollectionKey) -> None:
        """Removes what served before.

        Raises:
            CollectionNotFound: there is none of that name.
        """
        await self._means.catalog.migration(key).forget()

    async def abandon(self, key: CollectionKey) -> None:
        """Stops and forgets the migration of a collection that is about to be deleted."""
        running = self._running.pop(key, None)
        if running is not None:
            await running.stop()

    async def close(self) -> None:
        """Stops all migrations; what was encoded stays."""
        await asyncio.gather(*(one.stop() for one in self._running.values()))


class _Running:
    """One migration, from its beginning to its end."""

    def __init__(self, key: CollectionKey, wanted: Wanted, migration: Migration, means: Means) -> None:
        self.wanted = wanted
        self.state = MigrationState(wanted.model, Step.ENCODING)
        self.changed = asyncio.Event()
        self._key = key
        self._migration = migration
        self._means = means
        self._began = time.monotonic()
        self._encode: ByOwner | None = None
        self._task = asyncio.create_task(self._run())

    async def stop(self) -> None:
        """Ends it where it is."""
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        try:
            await self._moved()
        except asyncio.CancelledError:
            self._tell(Step.FAILED, error=BuildFailed(self._key.collection, "the migration was stopped"))
        except Exception as error:
            _log.warning("migration_failed", collection=self._key.collection, reason=str(error))
            self._tell(Step.FAILED, error=error)
        else:
            self._tell(Step.DONE)

    async def _moved(self) -> None:
        means, standing = self._means, await self._migration.standing()
        serving = standing.serving
        wanted = self._previous(standing).dense_source if self.wanted.back else self.wanted.model
        encoder, model, source = await means.models.open_model(wanted)
        self.state = replace(self.state, model=f"{model.model_id}@{model.revision}")
        if self.wanted.back and not is_of(self._previous(standing), model):
            before = self._previous(standing).dense_model_id
            raise MigrationRefused(self._key.collection, f"{before} is not configured any more; name its files")
        token_vectors = await self._token_vectors(standing)
        definition = described(serving, model, source, token_vectors=token_vectors)
        owners, others = await means.encoders_of(self._key, definition, encoder)
        self._encode = ByOwner(self._key.collection, owners, others)

        async def check(built: Built) -> None:
            self._tell(Step.CHECKING)
            report = await self._measured(built, encoder)
            self._tell(Step.CHANGING_OVER, check=report)
            judge(self._key.collection, report, self.wanted.bounds)

        to = Destination(model, source, self._encode, token_vectors)
        try:
            await self._migration.run(to, check, self._looked)
        except asyncio.CancelledError:
            # A change-over that has begun goes to its end, and then it was not stopped.
            if not is_of((await self._migration.standing()).serving, model):
                raise
            self._task.uncancel()
        if not is_of(serving, model):
            await means.moved(self._key)
            _log.info("collection_moved", collection=self._key.collection, model=self.state.model)

    def _previous(self, standing: Standing) -> CollectionDefinition:
        if standing.previous is None:
            raise MigrationRefused(self._key.collection, "there is nothing to go back to")
        return standing.previous

    async def _token_vectors(self, standing: Standing) -> bool:
        """Keeps what the collection does; where its model has no token vectors, nobody has decided against them."""
        if self.wanted.back:
            return self._previous(standing).code_bytes > 0
        if self.wanted.token_vectors is not None:
            return self.wanted.token_vectors
        if standing.serving.code_bytes:
            return True
        index = await self._open()
        return index is None or self._means.models.of(index.definition).codec is None

    async def _measured(self, built: Built, encoder: AsyncDenseEncoder) -> CheckReport:
        means, questions = self._means, self.wanted.questions
        asker = Asker(encoder, means.sparse, means.thresholds)
        report = await asker.recall(built)
        if not questions:
            return report
        report = replace(report, ndcg_after=await asker.ndcg(built, questions))
        index = await self._open()
        if index is None:
            return report
        before = Asker(means.models.of(index.definition), means.sparse, means.thresholds)
        return replace(report, ndcg_before=await before.ndcg(SearchedIndex(index), questions))

    async def _open(self) -> Index | None:
        """Returns the collection as it serves; None when its model cannot be used any more."""
        try:
            return await self._means.catalog.open(self._key)
        except ModelMismatch:
            return None

    def _looked(self, documents: int, done: int) -> None:
        step = Step.ENCODING if done < documents else Step.BUILDING
        self.state = replace(self.state, documents=documents, documents_done=done)
        self._tell(step)

    def _tell(self, step: Step, check: CheckReport | None = None, error: Exception | None = None) -> None:
        encoded = self._encode.count if self._encode else 0
        duration_s = time.monotonic() - self._began
        check = check or self.state.check
        self.state = replace(self.state, step=step, encoded=encoded, duration_s=duration_s, check=check, error=error)
        # Those who wait have this event; who comes later waits for the next one.
        self.changed.set()
        self.changed = asyncio.Event()
