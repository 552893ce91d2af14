"""A new generation on a server: all chunks are copied into another physical collection and weighed anew.

The copying runs beside searches and writes. What was written meanwhile is copied again at the end, while writes wait.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass

from qdrant_client import models

from encoders.term_statistics import TermStatistics
from indexers.qdrant.conditions import any_keyword, field_indexes, of_tenant
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import reweighed, stored_terms, token_count
from indexers.qdrant.space import VectorSpace
from indexers.qdrant.store import QdrantStore
from indexers.types import FieldType

INDEXES = {"document_id": models.PayloadSchemaType.KEYWORD, "version": models.PayloadSchemaType.INTEGER}
_POINTS_A_WRITE = 256
_TOKENS_A_WRITE = 1_024  # some 10 points, which the client turns into messages in 4 ms of the event loop
_CHARACTERS_A_WRITE = 500_000  # of documents, which take four bytes each at most
_IDS_A_FILTER = 1_000


async def create_generation(
    store: QdrantStore, names: PhysicalNames, number: int, space: VectorSpace, fields: Mapping[str, FieldType]
) -> str:
    """Makes an empty generation in the place of what a failed one left, and returns its name."""
    name = names.generation(number)
    await store.drop(name)
    await store.create(name, space, INDEXES | field_indexes(fields))
    return name


async def measure(store: QdrantStore, names: PhysicalNames, like: TermStatistics) -> TermStatistics:
    """Counts the terms of all chunks, in statistics of the kind of `like`."""
    everything = of_tenant(names.key.tenant)
    counted = [stored_terms(one) async for batch in store.scroll(names.chunks, everything, ["terms"]) for one in batch]
    return like.collected(counted)


@dataclass(frozen=True, slots=True)
class Copying:
    """Copies chunks from the serving generation into another one."""

    store: QdrantStore
    names: PhysicalNames
    target: str
    statistics: TermStatistics
    fields: Mapping[str, FieldType]
    keep: Callable[[], Awaitable[None]]
    """Is called before every piece: whoever copies holds a claim that wants to be kept."""
    source: str = ""
    """Where the chunks are read; empty means the serving generation."""

    async def everything(self) -> None:
        """Copies all chunks."""
        await self._copy(of_tenant(self.names.key.tenant))

    async def again(self, document_ids: Iterable[str]) -> None:
        """Replaces the chunks of some documents by what they are now."""
        documents = sorted(document_ids)
        for start in range(0, len(documents), _IDS_A_FILTER):
            part = documents[start : start + _IDS_A_FILTER]
            theirs = of_tenant(self.names.key.tenant, any_keyword("document_id", part))
            await self.keep()
            await self.store.delete(self.target, theirs)
            await self._copy(theirs)

    async def _copy(self, which: models.Filter) -> None:
        async for batch in self.store.scroll(self.source or self.names.chunks, which, None, vectors=True):
            for piece in pieces([reweighed(one, self.statistics, self.fields) for one in batch]):
                await self.keep()
                await self.store.upsert(self.target, piece)


def document_pieces(points: Iterable[models.PointStruct]) -> Iterator[list[models.PointStruct]]:
    """Cuts the points of documents into pieces; a long text, which may be nearly as large as a message, goes alone."""
    piece: list[models.PointStruct] = []
    characters = 0
    for point in points:
        length = len((point.payload or {})["text"])
        if piece and (len(piece) == _POINTS_A_WRITE or characters + length > _CHARACTERS_A_WRITE):
            yield piece
            piece, characters = [], 0
        piece.append(point)
        characters += length
    if piece:
        yield piece


def pieces(points: list[models.PointStruct]) -> Iterator[list[models.PointStruct]]:
    """Cuts points into pieces that stay below the size limit of a message."""
    piece: list[models.PointStruct] = []
    tokens = 0
    for point in points:
        piece.append(point)
        tokens += token_count(point)
        if len(piece) == _POINTS_A_WRITE or tokens >= _TOKENS_A_WRITE:
            yield piece
            piece, tokens = [], 0
    if piece:
        yield piece
