"""When a collection on a server gets a new generation, and how the alias comes to it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace

import structlog
from qdrant_client import models

from indexers.errors import BuildFailed, IndexerError, IndexUnavailable
from indexers.owned import OwnedTasks
from indexers.qdrant.conditions import field_indexes, of_tenant
from indexers.qdrant.documents import INDEXES, check_documents_fit, document_ids, rewrite_documents, touched_since
from indexers.qdrant.generations import Copying, create_generation, measure
from indexers.qdrant.lease import BUILDING, Lease
from indexers.qdrant.options import QdrantOptions
from indexers.qdrant.points import CollectionState, state_payload, statistics_id, statistics_point
from indexers.qdrant.store import QdrantStore
from indexers.qdrant.view import CollectionView
from indexers.qdrant.writing import QdrantWriting
from indexers.types import CollectionDefinition, FieldType

_SMALLEST = 64  # chunks, below which weighing anew does not pay
_DOCUMENTS_A_LOCK = 100
_FIRST_PAUSE_S = 60.0
_LONGEST_PAUSE_S = 86_400.0
_CATCHING_UP = 5  # rounds of copying what was written meanwhile, beside writes; the rest is copied while they wait

_log = structlog.get_logger()


class QdrantBuilding:
    """Makes the generations of one collection."""

    def __init__(
        self, store: QdrantStore, view: CollectionView, writing: QdrantWriting, options: QdrantOptions
    ) -> None:
        self._store = store
        self._view = view
        self._writing = writing
        self._options = options
        self._lock = asyncio.Lock()
        self._tasks = OwnedTasks()
        self._automatic: asyncio.Task[None] | None = None
        self._built_sequence = -1
        self._pause_s = 0.0  # after builds that failed
        self._not_before = 0.0

    async def build(self) -> None:
        """Copies into a new generation; cancelling stops that, and the old one goes on serving.

        Raises:
            BuildFailed: the server failed meanwhile.
        """
        closed = BuildFailed(self._name(), "the collection was closed meanwhile")
        await self._tasks.while_wanted(self._build(self._view.state.definition), closed)

    async def build_if_stale(self) -> None:
        """Builds when the collection has doubled, or halved, since its terms were counted.

        Raises:
            BuildFailed: the server failed meanwhile.
        """
        if await self._is_stale():
            await self.build()

    def start_when_needed(self) -> None:
        """Starts a build in the background when the collection may have doubled since the last one.

        After one that failed it waits, longer each time: a server that cannot bear a copy is not asked at every write.
        """
        idle = self._automatic is None or self._automatic.done()
        if self._options.build_automatically and idle and time.monotonic() >= self._not_before:
            self._automatic = self._tasks.start(self._build_when_doubled())

    async def redefine(self, fields: dict[str, FieldType], description: str) -> None:
        """Changes the definition; with new fields, writes wait until a new generation has them.

        Raises:
            TypeMismatch: a stored value cannot become the new type; nothing was changed.
        """
        await self._tasks.to_the_end(self._redefine(fields, description))

    async def close(self) -> None:
        """Stops what is being built."""
        await self._tasks.cancel()

    async def _build_when_doubled(self) -> None:
        try:
            if await self._is_stale():
                await self._build(self._view.state.definition)
            self._pause_s = 0.0
        except IndexerError as error:
            self._pause_s = min(max(_FIRST_PAUSE_S, 2 * self._pause_s), _LONGEST_PAUSE_S)
            self._not_before = time.monotonic() + self._pause_s
            _log.error("build_failed", collection=self._name(), reason=str(error), pause_s=self._pause_s)

    async def _is_stale(self) -> bool:
        counted = self._view.statistics.document_count
        chunks = await self._store.count(self._view.names.chunks, of_tenant(self._view.names.key.tenant))
        return chunks >= max(_SMALLEST, 2 * counted) or chunks <= counted // 2 - _SMALLEST

    async def _build(self, definition: CollectionDefinition) -> None:
        async with self._lock:
            if self._built_sequence == self._view.state.write_sequence:
                return
            try:
                async with asyncio.timeout(self._options.build_timeout_s), self._claim() as claim:
                    await self._copy_and_switch(definition, claim)
            except TimeoutError:
                raise BuildFailed(self._name(), f"took longer than {self._options.build_timeout_s:g} s") from None
            except IndexUnavailable as error:
                raise BuildFailed(self._name(), str(error)) from error

    async def _redefine(self, fields: dict[str, FieldType], description: str) -> None:
        async with self._lock, self._claim() as claim:
            await self._view.refresh()
            definition = replace(self._view.state.definition, fields=fields, description=description)
            if fields != self._view.state.definition.fields:
                await check_documents_fit(self._store, self._view.names, fields)
                await self._copy_and_switch(definition, claim)
                return
            async with self._writing.turn() as turn:
                state = replace(self._view.state, definition=definition)
                await turn.lease.set(state_payload(state), free=True)
                self._view.advance(state)

    @asynccontextmanager
    async def _claim(self) -> AsyncIterator[Lease]:
        """Keeps other processes from building the collection meanwhile."""
        lease = Lease(self._store, self._view.names, BUILDING)
        try:
            await self._view.show(await lease.take())
            yield lease
        finally:
            await lease.drop()

    async def _copy_and_switch(self, definition: CollectionDefinition, claim: Lease) -> None:
        store, names, fields = self._store, self._view.names, definition.fields
        since, number = self._view.state.write_sequence, self._view.state.generation + 1
        new_fields = fields != self._view.state.definition.fields
        if new_fields:
            await self._coerce_documents(fields)
        statistics = await measure(store, names, self._view.statistics)
        target = await create_generation(store, names, number, self._view.space, fields)
        copying = Copying(store, names, target, statistics, fields, claim.keep)
        await copying.everything()
        late = await self._catch_up(copying, since)
        async with self._writing.turn() as turn:

            async def keep() -> None:
                await claim.keep()
                await turn.lease.keep()

            touched = await touched_since(store, names, late)
            if new_fields:
                again = touched if late == since else await touched_since(store, names, since)
                await rewrite_documents(store, names, fields, sorted(again), keep)
            await replace(copying, keep=keep).again(touched)
            await self._switch(turn.lease, replace(self._view.state, definition=definition, generation=number), copying)

    async def _catch_up(self, copying: Copying, since: int) -> int:
        """Copies what was written meanwhile, until it is little, and returns the write that is still to be copied."""
        for _ in range(_CATCHING_UP):
            await self._view.refresh()
            reached = self._view.state.write_sequence
            touched = await touched_since(self._store, self._view.names, since)
            if len(touched) <= _DOCUMENTS_A_LOCK:
                break
            await copying.again(touched)
            since = reached
        return since

    async def _switch(self, lease: Lease, state: CollectionState, copied: Copying) -> None:
        """Serves from the new generation: its statistics, then the alias, then the collection's own point."""
        store, names, old = self._store, self._view.names, self._view.state.generation
        await lease.keep()
        await store.upsert(names.collections, [statistics_point(names.key, state.generation, copied.statistics)])
        await store.point_alias(names.chunks, copied.target)
        await lease.set(state_payload(state), free=True)
        self._view.advance(state, copied.statistics)
        self._built_sequence = state.write_sequence
        await store.drop(names.generation(old))
        outdated = models.HasIdCondition(has_id=[statistics_id(names.key, old)])
        await store.delete(names.collections, of_tenant(names.key.tenant, outdated))

    async def _coerce_documents(self, fields: Mapping[str, FieldType]) -> None:
        """Rewrites all documents, a few at a time, so that writes come between."""
        names = self._view.names
        await self._store.add_indexes(names.documents, INDEXES | field_indexes(fields))
        ids = await document_ids(self._store, names, of_tenant(names.key.tenant))
        for start in range(0, len(ids), _DOCUMENTS_A_LOCK):
            part = ids[start : start + _DOCUMENTS_A_LOCK]
            async with self._writing.turn() as turn:
                await rewrite_documents(self._store, names, fields, part, turn.lease.keep)

    def _name(self) -> str:
        return self._view.names.key.collection
