"""The only module that knows Qdrant Edge: builds a shard, opens it, and asks it which points are best.

Payloads and conditions have the shapes of `indexers.payload`, in which the engine compares as `indexers.matching` does.
Every call holds the GIL, so a search is one call for both branches, without payloads or vectors in the reply.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import qdrant_edge as engine
from numpy.typing import NDArray

from encoders.types import SparseVector
from indexers.errors import IndexerError, IndexUnavailable
from indexers.filters import Condition, Exists, Filter, MatchAny, Range
from indexers.options import GraphShape
from indexers.payload import Payload, payload_value
from indexers.types import FieldType, SearchQuery
from indexers.values import words

_DENSE = "dense"
_SPARSE = "sparse"
_FULL_SCAN_KB = 10_000  # below this many bytes of vectors brute force is as fast, and exact

_INDEXES = {
    FieldType.KEYWORD: engine.PayloadSchemaType.Keyword,
    FieldType.TEXT: engine.PayloadSchemaType.Keyword,  # of words
    FieldType.BOOL: engine.PayloadSchemaType.Keyword,
    FieldType.INTEGER: engine.PayloadSchemaType.Integer,
    FieldType.FLOAT: engine.PayloadSchemaType.Float,
    FieldType.DATETIME: engine.PayloadSchemaType.Datetime,
}


@dataclass(frozen=True, slots=True)
class EdgePoint:
    """A point as the shard stores it."""

    position: int
    dense: NDArray[np.float32]  # [dim], unit length
    sparse: SparseVector
    payload: Payload


class EdgeBuilder:
    """Makes a new shard; lives in the building process alone."""

    def __init__(self, path: Path, dim: int, fields: Mapping[str, FieldType], graph: GraphShape) -> None:
        path.mkdir(parents=True)
        with edge_errors():
            self._shard = engine.EdgeShard.create(str(path), _config(dim, graph))
            for name, declared in fields.items():
                self._shard.update(engine.UpdateOperation.create_field_index(name, _INDEXES[declared]))

    def add(self, points: Sequence[EdgePoint]) -> None:
        """Adds points."""
        with edge_errors():
            self._shard.update(engine.UpdateOperation.upsert_points([_point(one) for one in points]))

    def finish(self) -> None:
        """Builds the graph, which takes long and holds the GIL, and closes the shard."""
        with edge_errors():
            self._shard.optimize()
            self._shard.flush()
            self._shard.close()


class EdgeStore:
    """An open shard that is only read.

    Opening and closing hold the GIL as well: 3 to 6 ms and 1 to 3 ms for every 1,000 vectors, once a generation. A
    write-ahead log, which nothing here needs, would add half as much again.
    """

    def __init__(self, path: Path, dim: int, fields: Mapping[str, FieldType], search_ef: int) -> None:
        self._fields = fields
        self._search_ef = search_ef
        with edge_errors():
            self._shard = engine.EdgeShard.load(str(path), _reading_config(dim))

    def search(
        self, query: SearchQuery, filter: Filter | None, limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns the positions of the dense and the sparse branch's best points, best first; empty when not asked."""
        condition = None if filter is None else edge_filter(filter, self._fields)
        params = engine.SearchParams(hnsw_ef=max(self._search_ef, limit), exact=query.exact)
        requests = []
        if query.dense is not None:
            requests.append(_request(query.dense.tolist(), _DENSE, condition, limit, params))
        if query.sparse is not None:
            sparse = engine.SparseVector(query.sparse.indices.tolist(), query.sparse.values.tolist())
            requests.append(_request(sparse, _SPARSE, condition, limit, params))
        with edge_errors():
            found = iter(self._shard.query_batch(engine.QueryBatchRequest(requests)))
        dense = _positions(next(found)) if query.dense is not None else _NONE
        return dense, _positions(next(found)) if query.sparse is not None else _NONE

    def close(self) -> None:
        """Closes the shard."""
        with edge_errors():
            self._shard.close()


@contextmanager
def edge_errors() -> Iterator[None]:
    """Translates what the engine raises: it knows nothing finer than plain `Exception`."""
    try:
        yield
    except IndexerError:
        raise
    except Exception as error:
        raise IndexUnavailable("qdrant-edge", str(error)) from error


def edge_filter(filter: Filter, fields: Mapping[str, FieldType]) -> engine.Filter:
    """Translates a coerced filter."""
    return engine.Filter(
        must=[_condition(one, fields) for one in filter.must] or None,
        should=[_condition(one, fields) for one in filter.should] or None,
        must_not=[_condition(one, fields) for one in filter.must_not] or None,
    )


_NONE: NDArray[np.int64] = np.empty(0, dtype=np.int64)


def _config(dim: int, shape: GraphShape) -> engine.EdgeConfig:
    graph = engine.HnswIndexConfig(m=shape.m, ef_construct=shape.ef_construct, full_scan_threshold=_FULL_SCAN_KB)
    return engine.EdgeConfig(
        vectors={_DENSE: engine.EdgeVectorParams(size=dim, distance=engine.Distance.Dot, hnsw_config=graph)},
        sparse_vectors={_SPARSE: engine.EdgeSparseVectorParams()},
        optimizers=engine.EdgeOptimizersConfig(default_segment_number=1, indexing_threshold=_FULL_SCAN_KB),
        wal_enabled=False,  # a crashed build is thrown away whole
    )


def _reading_config(dim: int) -> engine.EdgeConfig:
    return engine.EdgeConfig(
        vectors={_DENSE: engine.EdgeVectorParams(size=dim, distance=engine.Distance.Dot)},
        sparse_vectors={_SPARSE: engine.EdgeSparseVectorParams()},
        max_search_threads=1,  # there is one segment
        wal_enabled=False,
    )


def _point(point: EdgePoint) -> engine.Point:
    sparse = engine.SparseVector(point.sparse.indices.tolist(), point.sparse.values.tolist())
    return engine.Point(point.position, {_DENSE: point.dense.tolist(), _SPARSE: sparse}, point.payload)


def _request(
    vector: list[float] | engine.SparseVector,
    name: str,
    condition: engine.Filter | None,
    limit: int,
    params: engine.SearchParams,
) -> engine.QueryRequest:
    nearest = engine.Query.Nearest(vector, using=name)
    return engine.QueryRequest(
        limit, query=nearest, filter=condition, params=params, with_payload=False, with_vector=False
    )


def _positions(found: list[engine.ScoredPoint]) -> NDArray[np.int64]:
    return np.array([point.id for point in found], dtype=np.int64)


def _condition(condition: Condition, fields: Mapping[str, FieldType]) -> engine.Filter | engine.FieldCondition:
    if isinstance(condition, Filter):
        return edge_filter(condition, fields)
    if isinstance(condition, Exists):
        return engine.Filter(must_not=[engine.IsEmptyCondition(condition.field)])
    if isinstance(condition, Range):
        return engine.FieldCondition(condition.field, range=_range(condition, fields[condition.field]))
    if not condition.values:
        return engine.Filter(must=[engine.HasIdCondition(set())])
    return _match(condition, fields[condition.field])


def _match(condition: MatchAny, declared: FieldType) -> engine.Filter | engine.FieldCondition:
    name = condition.field
    if declared is FieldType.TEXT:
        return engine.Filter(should=[_has_words(name, words(str(value))) for value in condition.values])
    if declared in (FieldType.FLOAT, FieldType.DATETIME):
        equal = [_range(Range(name, gte=value, lte=value), declared) for value in condition.values]
        return engine.Filter(should=[engine.FieldCondition(name, range=one) for one in equal])
    if declared is FieldType.INTEGER:
        return engine.FieldCondition(name, match=engine.MatchAny([int(str(value)) for value in condition.values]))
    return engine.FieldCondition(name, match=engine.MatchAny([str(payload_value(one)) for one in condition.values]))


def _has_words(name: str, asked: list[str]) -> engine.Filter:
    return engine.Filter(must=[engine.FieldCondition(name, match=engine.MatchValue(word)) for word in asked])


def _range(bounds: Range, declared: FieldType) -> engine.RangeFloat | engine.RangeDateTime:
    asked = {"gt": bounds.gt, "gte": bounds.gte, "lt": bounds.lt, "lte": bounds.lte}
    given = {name: payload_value(bound) for name, bound in asked.items() if bound is not None}
    if declared is FieldType.DATETIME:
        return engine.RangeDateTime(**{name: str(bound) for name, bound in given.items()})
    return engine.RangeFloat(**{name: float(bound) for name, bound in given.items()})
