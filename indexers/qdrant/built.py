"""Chunks and documents that a migration has built on a server and that do not serve."""

from __future__ import annotations

import random
from collections.abc import Sequence

from encoders.term_statistics import TermStatistics
from indexers.qdrant.conditions import of_tenant
from indexers.qdrant.migration_plan import Pair
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.searching import candidates_of, search_requests
from indexers.qdrant.store import QdrantStore
from indexers.types import Candidates, CollectionDefinition, SearchQuery

_LISTED = 10  # times as many as are wanted


class BuiltPair:
    """A pair that can be searched before it serves."""

    def __init__(self, store: QdrantStore, names: PhysicalNames, pair: Pair, statistics: TermStatistics) -> None:
        self._store = store
        self._names = names
        self._pair = pair
        self._statistics = statistics

    @property
    def definition(self) -> CollectionDefinition:
        """What it promises."""
        return self._pair.described()

    @property
    def statistics(self) -> TermStatistics:
        """The term statistics that its weights were made with."""
        return self._statistics

    async def search(self, query: SearchQuery) -> Candidates:
        """Searches it."""
        requests = search_requests(query, of_tenant(self._names.key.tenant), self._store.options)
        return candidates_of(query, await self._store.search(self._pair.chunks, requests))

    async def texts(self, count: int) -> list[str]:
        """Returns the texts of up to so many chunks, chosen by chance among the first that the server lists."""
        found: list[str] = []
        async for batch in self._store.scroll(self._pair.chunks, of_tenant(self._names.key.tenant), ["text"]):
            found += [str((one.payload or {})["text"]) for one in batch]
            if len(found) >= _LISTED * count:
                break
        return random.sample(found, min(count, len(found)))

    async def documents_of(self, chunk_ids: Sequence[str]) -> list[str]:
        """Returns the id of each chunk's document."""
        found = await self._store.retrieve(self._pair.chunks, list(chunk_ids), ["document_id"], strictly=True)
        theirs = {str(one.id): str((one.payload or {})["document_id"]) for one in found}
        return [theirs[one] for one in chunk_ids if one in theirs]
