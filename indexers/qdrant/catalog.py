"""All collections on a Qdrant server. Each has a point in a list that all tenants share, marked by tenant.

A collection exists when its point says what it is, which is written last when one is made. Making and deleting are
turns like writes, so several processes may do both at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import structlog
from qdrant_client import models

from indexers.definition import added_fields, new_definition
from indexers.errors import CollectionExists, CollectionNotFound, InvalidName, ModelMismatch, TooManyCollections
from indexers.index import Index
from indexers.models import Models
from indexers.names import check_key, check_tenant
from indexers.qdrant.conditions import NEVER, keyword, of_tenant
from indexers.qdrant.documents import create_documents
from indexers.qdrant.generations import create_generation
from indexers.qdrant.index import QdrantIndex
from indexers.qdrant.lease import WRITING, Lease
from indexers.qdrant.listing import ensure_list
from indexers.qdrant.migrating import QdrantMigration, end_change_over
from indexers.qdrant.migration_plan import MIGRATION_OF, read_plan
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.options import QdrantOptions
from indexers.qdrant.points import CollectionState, is_collection, place_point, point_id, state_of, state_payload
from indexers.qdrant.store import QdrantStore
from indexers.qdrant.tombstones import TOMBSTONE_OF
from indexers.qdrant.view import CollectionView
from indexers.types import CollectionDefinition, CollectionKey, FieldType

_log = structlog.get_logger()


class QdrantCatalog:
    """The collections of one server."""

    def __init__(self, options: QdrantOptions, known: Models) -> None:
        self._options = options
        self._models = known
        self._store = QdrantStore(options)
        self._opened: dict[CollectionKey, QdrantIndex] = {}
        self._left: list[QdrantIndex] = []  # of models that collections have left; requests may still hold them
        self._lock = asyncio.Lock()
        self._listed = False

    async def create(
        self, key: CollectionKey, fields: dict[str, FieldType], description: str, *, token_vectors: bool = True
    ) -> Index:
        """Makes an empty collection for the vectors of the configured model."""
        definition = new_definition(key, fields, description, self._models.configured, token_vectors=token_vectors)
        names = self._names(key)
        async with self._lock:
            if await self._find(key) is not None:
                raise CollectionExists(key.collection)
            if len(await self._all(key.tenant)) >= self._options.max_collections:
                raise TooManyCollections(self._options.max_collections)
            await self._make(names, definition)
        return await self.open(key)

    async def open(self, key: CollectionKey) -> Index:
        """Returns the collection; callers that come at once share one opening."""
        return await self._open(key)

    async def list(self, tenant: str) -> list[Index]:
        """Returns the tenant's collections by name; those of another model are left out and logged."""
        found: list[Index] = []
        for state in await self._all(check_tenant(tenant)):
            try:
                found.append(await self._open(state.definition.key))
            except ModelMismatch as error:
                _log.warning("collection_skipped", collection=error.collection, reason=str(error))
            except CollectionNotFound:
                continue  # deleted meanwhile
        return found

    async def update(self, key: CollectionKey, fields: dict[str, FieldType], description: str | None) -> Index:
        """Adds fields, changes the description, or both."""
        index = await self._open(key)
        definition = index.definition
        kept = definition.description if description is None else description
        await index.redefine(added_fields(definition.fields, fields), kept)
        return index

    def migration(self, key: CollectionKey) -> QdrantMigration:
        """Returns what moves a collection to another model."""
        return QdrantMigration(self._store, self._names(check_key(key)), lambda: self._leave(key))

    async def delete(self, key: CollectionKey) -> None:
        """Removes a collection and everything in it."""
        async with self._lock:
            if await self._find(key) is None:
                raise CollectionNotFound(key.collection)
            opened = self._opened.pop(key, None)
            if opened is not None:
                await opened.close()
            await self._remove(self._names(key))

    async def close(self) -> None:
        """Closes every collection, then the connection."""
        await asyncio.gather(*(index.close() for index in (*self._opened.values(), *self._left)))
        self._opened.clear()
        await self._store.close()

    async def _open(self, key: CollectionKey) -> QdrantIndex:
        async with self._lock:
            opened = self._opened.get(key)
            if opened is not None and not opened.moved:
                return opened
            state = await self._find(key)
            if state is None:
                raise CollectionNotFound(key.collection)
            serving = await self._behind_alias(state)
            model = await self._models.model_of(serving.definition)
            view = CollectionView(self._store, self._names(key), serving, model)
            await view.load_statistics()
            self._leave(key)
            self._opened[key] = QdrantIndex(self._store, view, self._options)
            return self._opened[key]

    def _leave(self, key: CollectionKey) -> None:
        """Lets the collection be opened anew; requests may go on with what they have."""
        opened = self._opened.pop(key, None)
        if opened is not None:
            self._left.append(opened)

    async def _behind_alias(self, state: CollectionState) -> CollectionState:
        """The alias says which generation serves, should a crash have come between it and the collection's point."""
        names = self._names(state.definition.key)
        target = await self._store.target_of(names.chunks)
        number = (target or "").removeprefix(names.generation(0)[:-1])
        if not number.isdigit() or int(number) == state.generation:
            return state
        plan = await read_plan(self._store, names)
        if plan.to is not None and plan.to.chunks == target:
            return await end_change_over(self._store, names, plan)
        return replace(state, generation=int(number))

    async def _make(self, names: PhysicalNames, definition: CollectionDefinition) -> None:
        """Makes a collection in a turn, so that of several processes one does."""
        store = self._store
        await store.upsert(self._list(), [place_point(names.key)], NEVER)
        lease = Lease(store, names, WRITING)
        try:
            if is_collection(await lease.claim()):
                raise CollectionExists(names.key.collection)
            await self._remove_parts(names)  # what a crash may have left
            await create_documents(store, names, names.documents_version(0), definition.fields)
            await store.point_alias(names.documents, names.documents_version(0))
            state = CollectionState(definition, 0, 0)
            space = CollectionView(store, names, state, self._models.configured).space
            await store.point_alias(names.chunks, await create_generation(store, names, 0, space, definition.fields))
            await lease.set(state_payload(state), free=True)
        finally:
            await lease.drop()

    async def _find(self, key: CollectionKey) -> CollectionState | None:
        """A name that no collection can have is a collection that does not exist."""
        try:
            check_key(key)
        except InvalidName:
            return None
        await self._ensure_list()
        found = await self._store.retrieve(self._list(), [point_id(key.tenant, key.collection)], None, strictly=True)
        payload = found[0].payload or {} if found else {}
        return state_of(payload) if is_collection(payload) else None

    async def _all(self, tenant: str) -> Sequence[CollectionState]:
        await self._ensure_list()
        named = models.Filter(must_not=[models.IsEmptyCondition(is_empty=models.PayloadField(key="collection"))])
        batches = self._store.scroll(self._list(), of_tenant(tenant, named), None)
        states = [state_of(one.payload or {}) async for batch in batches for one in batch]
        return sorted(states, key=lambda one: one.definition.key)

    async def _ensure_list(self) -> None:
        if not self._listed:
            await ensure_list(self._store, self._list())
        self._listed = True

    async def _remove(self, names: PhysicalNames) -> None:
        """Removes a collection in a turn: no write that is under way reaches one that is made under its name later."""
        lease = Lease(self._store, names, WRITING)
        try:
            await lease.take()
            await self._remove_parts(names)
            await self._store.delete(self._list(), of_tenant(names.key.tenant, _of_collection(names.key)))
        finally:
            await lease.drop()

    async def _remove_parts(self, names: PhysicalNames) -> None:
        plan = await read_plan(self._store, names)
        for pair in (plan.next, plan.previous, plan.away_from):
            if pair is not None:
                await self._store.drop(pair.chunks)
                await self._store.drop(pair.documents)
        for name in (names.chunks, names.documents):
            target = await self._store.target_of(name)
            if target is not None:
                await self._store.point_alias(name, None)
                await self._store.drop(target)
        await self._store.drop(names.documents)

    def _list(self) -> str:
        return f"{self._options.prefix}.collections"

    def _names(self, key: CollectionKey) -> PhysicalNames:
        return PhysicalNames(self._options.prefix, key)


def _of_collection(key: CollectionKey) -> models.Filter:
    marks = ("collection", "statistics_of", TOMBSTONE_OF, MIGRATION_OF)
    return models.Filter(should=[keyword(mark, key.collection) for mark in marks])
