"""What this process knows of a collection on a server: its state, and the statistics of its generation."""

from __future__ import annotations

from encoders.term_statistics import TermStatistics
from encoders.types import TokenCodec
from indexers.definition import is_of, no_statistics
from indexers.errors import CollectionMoved, CollectionNotFound
from indexers.options import DenseModel
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import CollectionState, is_collection, point_id, state_of, statistics_id, statistics_of
from indexers.qdrant.space import VectorSpace
from indexers.qdrant.store import QdrantStore


class CollectionView:
    """The newest state of a collection that this process has written or seen."""

    def __init__(self, store: QdrantStore, names: PhysicalNames, state: CollectionState, model: DenseModel) -> None:
        self._store = store
        self.names = names
        self._state = state
        self._model = model
        self._statistics: TermStatistics = no_statistics(state.definition)
        self._closed = False
        self.moved = False
        """Whether the collection was seen to have moved to another model."""

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
        return self._model.codec if self.state.definition.code_bytes else None

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
        found = await self._store.retrieve(self.names.collections, [wanted], None, strictly=True)
        self._statistics = statistics_of(found[0]) if found else no_statistics(self._state.definition)

    async def refresh(self) -> None:
        """Looks for a state that another process has written.

        Raises:
            CollectionNotFound: the collection was deleted meanwhile.
            CollectionMoved: it has moved to another model.
        """
        key = self.names.key
        found = await self._store.retrieve(
            self.names.collections, [point_id(key.tenant, key.collection)], None, strictly=True
        )
        payload = found[0].payload or {} if found else {}
        if not is_collection(payload):
            raise CollectionNotFound(key.collection)
        await self.show(state_of(payload))

    async def show(self, seen: CollectionState) -> None:
        """Takes over a state that was read, unless it is older than what is known.

        Raises:
            CollectionMoved: the collection has moved to another model.
        """
        known = self._state
        another = seen.definition.created_at != known.definition.created_at
        if not another and (seen.generation, seen.write_sequence) < (known.generation, known.write_sequence):
            return  # two reads can overtake each other
        if not is_of(seen.definition, self._model):
            self.moved = True
            raise CollectionMoved(self.names.key.collection)
        self._state = seen
        if another or seen.generation != known.generation:
            await self.load_statistics()

    def advance(self, state: CollectionState, statistics: TermStatistics | None = None) -> None:
        """Shows a state that was stored."""
        self._state = state
        self._statistics = self._statistics if statistics is None else statistics

    def close(self) -> None:
        """Makes every later use an error."""
        self._closed = True
