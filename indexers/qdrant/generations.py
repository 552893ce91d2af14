"""A new generation on a server: all chunks are copied into another physical collection and weighed anew.

The copying runs beside searches and writes. What was written meanwhile is copied again at the end, while writes wait.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from qdrant_client import models

from encoders.term_statistics import TermStatistics
from indexers.qdrant.conditions import any_keyword, field_indexes, of_tenant
from indexers.qdrant.names import PhysicalNames
from indexers.qdrant.points import reweighed, stored_terms, token_count
from indexers.qdrant.store import QdrantStore, VectorSpace
from indexers.types import FieldType

INDEXES = {"document_id": models.PayloadSchemaType.KEYWORD, "version": models.PayloadSchemaType.INTEGER}
_POINTS_A_WRITE = 256
_TOKENS_A_WRITE = 1_024  # some 10 points, which the client turns into messages in 4 ms of the event loop
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


async def copy_chunks(
    store: QdrantStore,
    names: PhysicalNames,
    target: str,
    statistics: TermStatistics,
    fields: Mapping[str, FieldType],
    only_documents: Iterable[str] | None = None,
) -> None:
    """Copies all chunks, or replaces those of some documents by what they are now."""
    if only_documents is None:
        await _copy(store, names, target, of_tenant(names.key.tenant), statistics, fields)
        return
    documents = sorted(only_documents)
    for start in range(0, len(documents), _IDS_A_FILTER):
        theirs = of_tenant(names.key.tenant, any_keyword("document_id", documents[start : start + _IDS_A_FILTER]))
        await store.delete(target, theirs)
        await _copy(store, names, target, theirs, statistics, fields)


async def write_points(store: QdrantStore, name: str, points: list[models.PointStruct]) -> None:
    """Writes points in pieces that stay below the size limit of a message."""
    for piece in _pieces(points):
        await store.upsert(name, piece)


def _pieces(points: list[models.PointStruct]) -> Iterator[list[models.PointStruct]]:
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


async def _copy(
    store: QdrantStore,
    names: PhysicalNames,
    target: str,
    which: models.Filter,
    statistics: TermStatistics,
    fields: Mapping[str, FieldType],
) -> None:
    async for batch in store.scroll(names.chunks, which, None, vectors=True):
        await write_points(store, target, [reweighed(one, statistics, fields) for one in batch])
