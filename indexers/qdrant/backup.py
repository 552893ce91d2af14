"""Backup and restore of collections on a server: snapshots of what they consist of, and their statistics as JSON.

While the node makes the snapshots of a collection, its writers wait their turn: so chunks and documents agree. A
restore builds everything beside what is there, counts it, and switches searches over with one change of aliases.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from qdrant_client import models

from indexers.backup.manifest import (
    QDRANT,
    BackedUp,
    Manifest,
    check_backup,
    check_empty,
    described,
    now,
    read_manifest,
    write_manifest,
)
from indexers.errors import CollectionExists, CollectionNotFound, IndexCorrupt, IndexUnavailable
from indexers.generation import replace_file
from indexers.names import check_key
from indexers.options import DenseModel
from indexers.qdrant.conditions import of_tenant
from indexers.qdrant.lease import BUILDING, WRITING, Lease, holding
from indexers.qdrant.listing import ensure_list
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import (
    CollectionState,
    is_collection,
    point_id,
    state_of,
    state_payload,
    state_point,
    statistics_id,
)
from indexers.qdrant.repair import made_good
from indexers.qdrant.snapshots import Snapshots
from indexers.qdrant.store import QdrantStore
from indexers.record_schema import definition_to_json
from indexers.types import CollectionKey, Counts

CHUNKS, DOCUMENTS, STATE = "chunks", "documents", "state"
_LEFT_OUT = "tombstones, which are of use to writes that began before the backup only"


@dataclass(frozen=True, slots=True)
class _Fresh:
    """A collection that is built up beside the one that serves."""

    names: PhysicalNames
    generation: int
    documents: str

    @property
    def chunks(self) -> str:
        return self.names.generation(self.generation)


class QdrantBackup:
    """Backs up and restores the collections of one server."""

    def __init__(self, store: QdrantStore, snapshots: Snapshots) -> None:
        self._store = store
        self._snapshots = snapshots
        self._prefix = store.options.prefix

    async def keys(self, tenant: str) -> list[CollectionKey]:
        """Returns the tenant's collections by name."""
        names = PhysicalNames(self._prefix, CollectionKey(tenant, ""))
        await ensure_list(self._store, names.collections)
        named = models.Filter(must_not=[models.IsEmptyCondition(is_empty=models.PayloadField(key="collection"))])
        batches = self._store.scroll(names.collections, of_tenant(tenant, named), ["collection"])
        found = [one.payload["collection"] async for batch in batches for one in batch if one.payload]
        return [CollectionKey(tenant, name) for name in sorted(found)]

    async def back_up(self, folder: Path, keys: Sequence[CollectionKey]) -> Manifest:
        """Backs collections up into an empty folder.

        Raises:
            CollectionNotFound: one is not there.
            FileExistsError: the folder is not empty.
            IndexUnavailable: the server failed, or a collection is spread over several nodes.
        """
        check_empty(folder)
        backed_up = [await self._back_up(folder, key) for key in keys]
        manifest = Manifest(QDRANT, now(), tuple(backed_up), left_out=_LEFT_OUT)
        write_manifest(folder, manifest)
        return manifest

    async def restore(
        self, folder: Path, places: Sequence[tuple[BackedUp, CollectionKey]], *, over: bool, model: DenseModel | None
    ) -> None:
        """Puts collections of a backup on the server, each under the key given with it.

        Raises:
            CollectionExists: one is there already, and `over` is not given.
            IndexCorrupt: the backup is not whole, or the server made something else of it.
            ModelMismatch: see `check_backup`.
        """
        check_backup(folder, read_manifest(folder), [one for one, _ in places], model)
        for _, key in places:
            if await self._state(check_key(key)) is not None and not over:
                raise CollectionExists(key.collection)
        for one, key in places:
            await self._restore(folder, one, PhysicalNames(self._prefix, key))

    async def _back_up(self, folder: Path, key: CollectionKey) -> BackedUp:
        names, store = PhysicalNames(self._prefix, key), self._store
        if await self._state(key) is None:
            raise CollectionNotFound(key.collection)
        async with holding(self._store, names, WRITING) as (lease, found):
            state, _ = await made_good(store, names, lease, found)
            sources = {CHUNKS: await self._behind(names.chunks), DOCUMENTS: await self._behind(names.documents)}
            for name in sources.values():
                await self._snapshots.check_whole(name)
            counts = await self._counts(sources[DOCUMENTS], sources[CHUNKS], key.tenant)
            statistics = await store.retrieve(names.collections, [statistics_id(key, state.generation)], None)
            made = {part: await self._snapshots.make(name) for part, name in sources.items()}
        place = folder / key.tenant / key.collection
        for part, name in sources.items():
            try:
                await self._snapshots.fetch(name, made[part], place / f"{part}.snapshot")
            finally:
                await self._snapshots.remove(name, made[part])
        replace_file(place / "state.json", json.dumps({"statistics": [one.payload for one in statistics]}).encode())
        files = [described(folder, place / f"{part}.snapshot", part) for part in sources]
        files.append(described(folder, place / "state.json", STATE))
        definition = definition_to_json(state.definition)
        return BackedUp(definition, state.write_sequence, counts.documents, counts.chunks, tuple(files))

    async def _restore(self, folder: Path, backed_up: BackedUp, names: PhysicalNames) -> None:
        documents = f"{names.documents}.r{time.time_ns() // 1_000}"
        if await self._state(names.key) is None:
            fresh = _Fresh(names, 0, documents)
            await self._built_up(folder, backed_up, fresh)
            await self._point_to(fresh)
            state = _restored_state(backed_up, fresh)
            await self._store.upsert(names.collections, [state_point(state)])
            return
        async with holding(self._store, names, BUILDING) as (_, there):
            fresh = _Fresh(names, there.generation + 1, documents)
            await self._built_up(folder, backed_up, fresh)
            lease = Lease(self._store, names, WRITING)
            try:
                await lease.take()
                await self._point_to(fresh)
                await lease.set(state_payload(_restored_state(backed_up, fresh)), free=True)
            finally:
                await lease.drop()

    async def _built_up(self, folder: Path, backed_up: BackedUp, fresh: _Fresh) -> None:
        """Builds a collection up; when that fails nothing of it is left."""
        try:
            await self._build_up(folder, backed_up, fresh)
        except (IndexUnavailable, IndexCorrupt):
            with suppress(IndexUnavailable):
                await self._store.drop(fresh.chunks)
                await self._store.drop(fresh.documents)
            raise

    async def _build_up(self, folder: Path, backed_up: BackedUp, fresh: _Fresh) -> None:
        """Makes physical collections of the snapshots, and counts what is in them."""
        old, new = backed_up.key, fresh.names.key
        for name, part in ((fresh.chunks, CHUNKS), (fresh.documents, DOCUMENTS)):
            await self._store.drop(name)
            file = backed_up.file(part)
            await self._snapshots.restore(name, folder / file.path, file.sha256)
            if old.tenant != new.tenant:
                await self._store.set_payload(name, {"tenant": new.tenant}, of_tenant(old.tenant))
        found = await self._counts(fresh.documents, fresh.chunks, new.tenant)
        if found != backed_up.counts:
            raise IndexCorrupt(new.collection, f"the server made {found} of the backup, not {backed_up.counts}")
        stored = json.loads((folder / backed_up.file(STATE).path).read_text())
        for one in stored["statistics"]:
            payload = {**one, "tenant": new.tenant, "statistics_of": new.collection}
            point = models.PointStruct(id=statistics_id(new, fresh.generation), vector={}, payload=payload)
            await self._store.upsert(fresh.names.collections, [point])

    async def _point_to(self, fresh: _Fresh) -> None:
        """Serves what was built up; searches go over in one step, and what served before is dropped."""
        names, store = fresh.names, self._store
        old = [await store.target_of(names.chunks), await store.target_of(names.documents)]
        if old[1] is None:
            await store.drop(names.documents)  # an alias cannot have the name of a physical collection
        await store.point_aliases({names.chunks: fresh.chunks, names.documents: fresh.documents})
        for name in old:
            if name is not None and name not in (fresh.chunks, fresh.documents):
                await store.drop(name)

    async def _counts(self, documents: str, chunks: str, tenant: str) -> Counts:
        of = of_tenant(tenant)
        return Counts(await self._store.count(documents, of), await self._store.count(chunks, of))

    async def _behind(self, name: str) -> str:
        return await self._store.target_of(name) or name

    async def _state(self, key: CollectionKey) -> CollectionState | None:
        names = PhysicalNames(self._prefix, key)
        await ensure_list(self._store, names.collections)
        found = await self._store.retrieve(
            names.collections, [point_id(key.tenant, key.collection)], None, strictly=True
        )
        payload = found[0].payload or {} if found else {}
        return state_of(payload) if is_collection(payload) else None


def _restored_state(backed_up: BackedUp, fresh: _Fresh) -> CollectionState:
    """Returns the state of a restored collection, with a sequence above all that it ever had."""
    definition = replace(backed_up.described(), key=fresh.names.key)
    sequence = max(time.time_ns() // 1_000, backed_up.write_sequence + 1)
    return CollectionState(definition, fresh.generation, sequence)
