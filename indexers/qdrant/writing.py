"""The write side of a collection on a server: the order of steps that leaves a crash nothing to lose.

A write first announces itself in the collection's own point, then come new chunks, then the old ones go, then the
documents, then the point says that the write has ended. Of a deletion the tombstones come first. What broke off is
made good by whoever writes next. Any number of processes write a collection: each in its turn (`Lease`), and what a
condition is decided by is read within the turn.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from qdrant_client import models

from indexers.owned import OwnedTasks
from indexers.qdrant.conditions import any_keyword, of_tenant, older_than
from indexers.qdrant.generations import document_pieces, pieces
from indexers.qdrant.lease import WRITING, Lease
from indexers.qdrant.points import CollectionState, chunk_point, document_point, point_id, state_payload
from indexers.qdrant.repair import made_good, parts
from indexers.qdrant.store import QdrantStore
from indexers.qdrant.tombstones import Tombstones
from indexers.qdrant.view import CollectionView
from indexers.types import EncodedDocument


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn at writing, and the ids of those whose deletion it has completed for one who could not."""

    lease: Lease
    completed: frozenset[str]


class QdrantWriting:
    """Changes the documents of a collection, one call at a time."""

    def __init__(self, store: QdrantStore, view: CollectionView) -> None:
        self._store = store
        self._view = view
        self._names = view.names
        self._tombstones = Tombstones(store, view.names)
        self._tasks = OwnedTasks()
        self._lock = asyncio.Lock()

    async def replace(self, documents: Sequence[EncodedDocument], since: int | None) -> frozenset[str]:
        """Replaces documents, which must be valid, and returns the ids of those that were left alone.

        It goes on to its end even when the caller leaves.
        """
        return await self._tasks.to_the_end(self._replace(documents, since))

    async def delete(self, document_ids: Sequence[str], since: int | None) -> int:
        """Deletes documents and returns how many were there; goes on to its end even when the caller leaves."""
        return await self._tasks.to_the_end(self._delete(document_ids, since)) if document_ids else 0

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[Turn]:
        """Holds the turn while the body runs; the view then shows the newest state, and nothing is unfinished."""
        async with self._lock:
            lease = Lease(self._store, self._names, WRITING)
            try:
                state = await lease.take()
                await self._view.show(state)
                repaired, completed = await made_good(self._store, self._names, lease, state)
                await self._view.show(repaired)
                yield Turn(lease, frozenset(completed))
            finally:
                await lease.drop()

    async def settle(self) -> None:
        """Waits for a write that is under way; one that broke off is made good."""
        await self._view.refresh()
        if self._view.state.unfinished:
            async with self.turn():
                pass

    async def close(self) -> None:
        """Lets started writes finish."""
        await self._tasks.drain()

    async def _replace(self, documents: Sequence[EncodedDocument], since: int | None) -> frozenset[str]:
        async with self.turn() as turn:
            ids = [one.document.document_id for one in documents]
            superseded = frozenset() if since is None else await self._changed_after(since, ids)
            kept = [one for one in documents if one.document.document_id not in superseded]
            if kept:
                state = await self._begin(turn.lease)
                await self._write(kept, state, turn.lease)
                await self._end(turn.lease, state)
            return superseded

    async def _delete(self, document_ids: Sequence[str], since: int | None) -> int:
        async with self.turn() as turn:
            stored = await self._sequences(document_ids)
            ids = [one for one in document_ids if since is None or stored.get(one, 0) <= since]
            if not ids:
                return 0
            state = await self._begin(turn.lease)
            await self._tombstones.put(ids, state.write_sequence)
            for part in parts(ids):
                await turn.lease.keep()
                theirs = of_tenant(self._names.key.tenant, any_keyword("document_id", part))
                await self._store.delete(self._names.chunks, theirs)
                await self._store.delete(self._names.documents, theirs)
            await self._end(turn.lease, state)
            return len((stored.keys() | turn.completed) & set(ids))

    async def _write(self, documents: Sequence[EncodedDocument], state: CollectionState, lease: Lease) -> None:
        names, version, store = self._names, state.write_sequence, self._store
        ids = [one.document.document_id for one in documents]
        older_chunks = older_than(names.key.tenant, "version", version)
        older_documents = older_than(names.key.tenant, "write_sequence", version)
        for piece in pieces(await asyncio.to_thread(self._chunk_points, documents, state)):
            await lease.keep()
            await store.upsert(names.chunks, piece, older_chunks)
        for part in parts(ids):
            await lease.keep()
            await store.delete(names.chunks, self._older_than(version, part))
        for piece in document_pieces(document_point(one, state) for one in documents):
            await lease.keep()
            await store.upsert(names.documents, piece, older_documents)

    async def _begin(self, lease: Lease) -> CollectionState:
        """Announces a write under a sequence of its own, which is above all before it; it follows the clock.

        Two numbers are used up: who reads the collection while the write runs, or after it broke off, sees the lower
        one, and what he then writes under a condition is newer than this write.
        """
        known = self._view.state
        sequence = max(known.write_sequence + 2, time.time_ns() // 1_000)
        announced = replace(known, write_sequence=sequence - 1, unfinished=sequence)
        await lease.set(state_payload(announced))
        self._view.advance(announced)
        return replace(announced, write_sequence=sequence)

    async def _end(self, lease: Lease, state: CollectionState) -> None:
        """Says that the write has ended, which ends the turn too."""
        ended = replace(state, unfinished=0)
        await lease.set(state_payload(ended), free=True)
        self._view.advance(ended)

    async def _changed_after(self, since: int, document_ids: Sequence[str]) -> frozenset[str]:
        stored = await self._sequences(document_ids)
        written = {name for name, sequence in stored.items() if sequence > since}
        return frozenset(written | await self._tombstones.deleted_after(since, document_ids))

    async def _sequences(self, document_ids: Iterable[str]) -> dict[str, int]:
        found: dict[str, int] = {}
        for part in parts(list(document_ids)):
            wanted = [point_id(one) for one in part]
            fields = ["document_id", "write_sequence"]
            for one in await self._store.retrieve(self._names.documents, wanted, fields, strictly=True):
                payload = one.payload or {}
                found[payload["document_id"]] = int(payload.get("write_sequence", 0))
        return found

    def _chunk_points(self, documents: Sequence[EncodedDocument], state: CollectionState) -> list[models.PointStruct]:
        statistics, codec = self._view.statistics, self._view.codec
        return [chunk_point(one, chunk, state, statistics, codec) for one in documents for chunk in one.chunks]

    def _older_than(self, version: int, document_ids: Sequence[str]) -> models.Filter:
        older = models.FieldCondition(key="version", range=models.Range(lt=version))
        return of_tenant(self._names.key.tenant, any_keyword("document_id", document_ids), older)
