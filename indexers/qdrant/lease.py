"""A process's turn at changing a collection: of all that want one, on whatever machine, one has it.

The collection's own point says who: setting its `writing` key where it still is what was read is one step on the server
(a filter and an assignment in one operation, ordered by the shard's leader), and reading it back tells who won. No
clocks are compared. A holder names himself anew while he works; who sees one name for as long as it says there, by his
own clock, takes over. The one who was silent can change the collection's point no more, which asks for his name, nor
newer documents and chunks, which replace older versions only.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any
from uuid import uuid4

from qdrant_client import models

from indexers.errors import CollectionNotFound, IndexUnavailable
from indexers.qdrant.conditions import any_keyword, keyword, of_tenant
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import CollectionState, is_collection, point_id, state_of
from indexers.qdrant.store import QdrantStore

WRITING = "writing"
BUILDING = "building"
FREE = ""
_FIRST_PAUSE_S = 0.005
_LONGEST_PAUSE_S = 0.25
_RENEWED_AFTER = 1 / 3  # of the silence that is allowed


class Lease:
    """One process's claim on one collection, as `key` of the collection's point has it."""

    def __init__(self, store: QdrantStore, names: PhysicalNames, key: str) -> None:
        self._store = store
        self._names = names
        self._key = key
        self._point = point_id(names.key.tenant, names.key.collection)
        self._silence_s = store.options.silence_s
        self._name = FREE
        self._before = FREE  # the name before, which still stands when a renaming was broken off
        self._named_at = 0.0
        self._one_by_one = asyncio.Lock()  # a name must have arrived before anything asks for it

    async def take(self) -> CollectionState:
        """Waits for the turn, and returns the state that the one before has left.

        Raises:
            CollectionNotFound: the collection was deleted.
            IndexUnavailable: others would not let go of it in time.
        """
        payload = await self.claim()
        if not is_collection(payload):
            await self.drop()
            raise CollectionNotFound(self._names.key.collection)
        return state_of(payload)

    async def claim(self) -> dict[str, Any]:
        """Waits for the turn, and returns what the point says, be it a collection or only a place for one.

        Raises:
            CollectionNotFound: there is no point.
            IndexUnavailable: others would not let go of it in time.
        """
        try:
            async with asyncio.timeout(self._store.options.turn_wait_s):
                return await self._take()
        except TimeoutError:
            raise self._lost("others are changing the collection") from None

    async def keep(self) -> None:
        """Names itself anew when that is due; to be called before every call of the turn.

        Raises:
            IndexUnavailable: another has taken over.
        """
        async with self._one_by_one:
            await self._keep()

    async def _keep(self) -> None:
        if time.monotonic() - self._named_at < self._silence_s * _RENEWED_AFTER:
            return
        old = self._name
        await self._name_anew(old)
        if (await self._read()).get(self._key) != self._name:
            self._name = FREE
            raise self._lost("this process was silent for too long, and another one has taken over")

    async def set(self, payload: Mapping[str, Any], *, free: bool = False) -> None:
        """Changes the collection's point, and with `free` ends the turn in the same step.

        Raises:
            IndexUnavailable: another has taken over; nothing was changed.
        """
        async with self._one_by_one:
            await self._keep()
            await self._set(payload, free=free)

    async def _set(self, payload: Mapping[str, Any], *, free: bool) -> None:
        name = self._name
        more = {self._key: FREE} if free else {}
        await self._store.set_payload(self._names.collections, {**payload, **more}, self._named(name))
        if time.monotonic() - self._named_at >= self._silence_s:
            raise self._lost("the server took so long that another process may have taken over")
        self._name = FREE if free else name

    async def drop(self) -> None:
        """Ends the turn, if it has not ended; a server that cannot be told sees the silence."""
        if self._name:
            names, self._name = [self._name, self._before], FREE
            with contextlib.suppress(IndexUnavailable):
                await self._store.set_payload(self._names.collections, {self._key: FREE}, self._named(*names))

    async def _take(self) -> dict[str, Any]:
        held_by, seen_at, pause_s = FREE, 0.0, _FIRST_PAUSE_S
        while True:
            silent = held_by != FREE and time.monotonic() - seen_at > _allowed_s(held_by, self._silence_s)
            mine = await self._name_anew(held_by if silent else FREE)
            payload = await self._read()
            holder = str(payload.get(self._key) or FREE)
            if holder == mine:
                return payload
            self._name = FREE
            if holder != held_by:
                held_by, seen_at = holder, time.monotonic()
            await asyncio.sleep(pause_s * random.uniform(0.5, 1.0))  # noqa: S311 - so that those who wait do not ask in step
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _name_anew(self, over: str) -> str:
        """Puts a new name in the place of `over`, if that is what stands there."""
        self._before, self._named_at = self._name, time.monotonic()
        self._name = f"{self._silence_s:g}/{uuid4().hex}"
        await self._store.set_payload(self._names.collections, {self._key: self._name}, self._named(over))
        return self._name

    async def _read(self) -> dict[str, Any]:
        found = await self._store.retrieve(self._names.collections, [self._point], None, strictly=True)
        if not found:
            raise CollectionNotFound(self._names.key.collection)
        return dict(found[0].payload or {})

    def _named(self, *names: str) -> models.Filter:
        this = models.HasIdCondition(has_id=[self._point])
        if known := [one for one in names if one]:
            return of_tenant(self._names.key.tenant, this, any_keyword(self._key, known))
        nobody = models.IsEmptyCondition(is_empty=models.PayloadField(key=self._key))
        free = models.Filter(should=[nobody, keyword(self._key, FREE)])
        return of_tenant(self._names.key.tenant, this, free)

    def _lost(self, reason: str) -> IndexUnavailable:
        return IndexUnavailable(f"collection {self._names.key.collection!r}", reason)


@asynccontextmanager
async def holding(store: QdrantStore, names: PhysicalNames, key: str) -> AsyncIterator[tuple[Lease, CollectionState]]:
    """Holds a claim for as long as the body runs, however long one call of it takes.

    Raises:
        CollectionNotFound: the collection was deleted.
        IndexUnavailable: others would not let go of it in time.
    """
    lease = Lease(store, names, key)
    keeping: asyncio.Task[None] | None = None
    try:
        state = await lease.take()
        keeping = asyncio.create_task(_keep(lease, store.options.silence_s / 4))
        yield lease, state
    finally:
        if keeping is not None:
            keeping.cancel()
            with contextlib.suppress(asyncio.CancelledError, IndexUnavailable):
                await keeping
        await lease.drop()


async def _keep(lease: Lease, every_s: float) -> None:
    while True:
        await asyncio.sleep(every_s)
        await lease.keep()


def _allowed_s(name: str, otherwise: float) -> float:
    """Reads from a name how long its holder may be silent."""
    try:
        return float(name.partition("/")[0])
    except ValueError:
        return otherwise
