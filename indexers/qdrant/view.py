"""What this process knows of a collection on a server: its state, and the statistics of its generation."""

from __future__ import annotations

import time
from dataclasses import replace

from encoders.term_statistics import TermStatistics
from encoders.types import TokenCodec
from indexers.definition import no_statistics
from indexers.errors import CollectionNotFound
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import CollectionState, point_id, state_of, state_point, statistics_id, statistics_of
from indexers.qdrant.store import QdrantStore, VectorSpace


class CollectionView:
    """The newest state of a collection that this process has written or seen."""

    def __init__(
        self, store: QdrantStore, names: PhysicalNames, state: CollectionState, codec: TokenCodec | None
    ) -> None:
        self._store = store
        self.names = names
        self._state = state
        self._codec = codec
        self._statistics: TermStatistics = no_statistics(state.definition)
        self._closed = False

    @property
    def state(self) -> CollectionState:
        """The state.

        Raises:
            CollectionNotFound: the collection was closed.
        """
        if self._closed:
            raise CollectionNotFound(self.names.key.collection)
        return self._state

    @property
    def codec(self) -> TokenCodec | None:
        """The codec of the collection's token vectors; None when it stores none."""
        return self._codec if self.state.definition.code_bytes else None

    @property
    def space(self) -> VectorSpace:
        """What vectors a generation of the collection holds."""
        return VectorSpace(self.state.definition.dim, 0 if self.codec is None else self.codec.dim)

    @property
    def statistics(self) -> TermStatistics:
        """The statistics of the generation; empty ones before the first build."""
        return self._statistics

    async def load_statistics(self) -> None:
        """Reads the statistics of the generation."""
        wanted = statistics_id(self.names.key, self._state.generation)
        found = await self._store.retrieve(self.names.collections, [wanted], None)
        self._statistics = statistics_of(found[0]) if found else no_statistics(self._state.definition)

    async def refresh(self) -> None:
        """Looks for a state that another process has written.

        Raises:
            CollectionNotFound: the collection was deleted meanwhile.
        """
        key = self.names.key
        found = await self._store.retrieve(self.names.collections, [point_id(key.tenant, key.collection)], None)
        if not found:
            raise CollectionNotFound(key.collection)
        seen, known = state_of(found[0]), self._state
        another = seen.definition.created_at != known.definition.created_at
        # Of two processes that write at once the last one to end stores the lower sequence, perhaps: what is stored
        # holds, or what was cached under the higher one would outlive that write.
        if another or seen.generation >= known.generation:
            self._state = seen
            if another or seen.generation != known.generation:
                await self.load_statistics()

    async def after_a_write(self) -> CollectionState:
        """Returns the state after a write that begins now, with a sequence above all that other processes stored.

        It follows the clock, in microseconds, so processes that write at once do not give the same one to two states.

        Raises:
            CollectionNotFound: the collection was deleted meanwhile.
        """
        await self.refresh()
        sequence = max(self._state.write_sequence + 1, time.time_ns() // 1_000)
        return replace(self._state, write_sequence=sequence)

    async def advance(self, state: CollectionState, statistics: TermStatistics | None = None) -> None:
        """Stores a new state, then shows it."""
        await self._store.upsert(self.names.collections, [state_point(state)])
        self._state = state
        self._statistics = self._statistics if statistics is None else statistics

    def close(self) -> None:
        """Makes every later use an error."""
        self._closed = True
