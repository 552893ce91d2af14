"""A small vector store for the fake Qdrant server. It is not Qdrant's engine: brute force over dictionaries.

It keeps the parts of Qdrant's behaviour that are easy to get wrong: types match strictly, an empty filter matches all,
sparse queries return only points that share a term, aliases stand for collections everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from qdrant_client import grpc
from qdrant_client.conversions.conversion import grpc_to_payload


@dataclass
class StoredPoint:
    """A point as it came, and its payload as plain values."""

    point: grpc.PointStruct
    payload: dict[str, Any]

    def dense(self) -> list[float]:
        """Returns the dense vector."""
        vector = self.point.vectors.vectors.vectors["dense"]
        return list(vector.dense.data or vector.data)

    def tokens(self) -> list[list[float]]:
        """Returns the multivector; empty when the point has none."""
        vectors = self.point.vectors.vectors.vectors
        return [list(one.data) for one in vectors["tokens"].multi_dense.vectors] if "tokens" in vectors else []

    def sparse(self) -> dict[int, float]:
        """Returns the sparse vector by index."""
        vector = self.point.vectors.vectors.vectors["sparse"]
        if vector.HasField("sparse"):
            return dict(zip(vector.sparse.indices, vector.sparse.values, strict=True))
        return dict(zip(vector.indices.data, vector.data, strict=True))


@dataclass
class StoredCollection:
    """A physical collection."""

    vector_names: set[str] = field(default_factory=set)
    indexes: dict[str, Any] = field(default_factory=dict)  # by field, the requests that made them
    points: dict[str, StoredPoint] = field(default_factory=dict)

    def upsert(self, point: grpc.PointStruct, over: grpc.Filter | None = None) -> None:
        """Puts a point in the place of what has its id, if that passes `over`.

        Raises:
            KeyError: the collection has no vector of a name.
        """
        for name in point.vectors.vectors.vectors:
            if name not in self.vector_names:
                raise KeyError(name)
        there = self.points.get(point.id.uuid)
        if over is not None and there is not None and not passes(over, point.id.uuid, there.payload):
            return
        self.points[point.id.uuid] = StoredPoint(point, grpc_to_payload(point.payload))

    def set_payload(self, filter: grpc.Filter, values: Any) -> None:
        """Sets some keys of the points that pass."""
        for stored in self.passing(filter):
            for name, value in values.items():
                stored.point.payload[name].CopyFrom(value)
            stored.payload = grpc_to_payload(stored.point.payload)

    def passing(self, filter: grpc.Filter) -> list[StoredPoint]:
        """Returns the points that pass, by id."""
        return [self.points[one] for one in sorted(self.points) if passes(filter, one, self.points[one].payload)]

    def query(self, request: Any) -> list[tuple[StoredPoint, float]]:
        """Returns the best points of a query or prefetch, best first."""
        eligible = self.passing(request.filter)
        if len(getattr(request, "prefetch", ())):
            prefetched = {id(point) for one in request.prefetch for point, _ in self.query(one)}
            eligible = [point for point in eligible if id(point) in prefetched]
        nearest = request.query.nearest
        if request.using == "dense":
            query = list(nearest.dense.data)
            scored = [(one, _dot(query, one.dense())) for one in eligible]
        elif request.using == "tokens":
            asked = [list(one.data) for one in nearest.multi_dense.vectors]
            scored = [(one, _max_similarity(asked, one.tokens())) for one in eligible if one.tokens()]
        else:
            wanted = dict(zip(nearest.sparse.indices, nearest.sparse.values, strict=True))
            scored = [
                (one, math.fsum(wanted[index] * value for index, value in one.sparse().items() if index in wanted))
                for one in eligible
                if wanted.keys() & one.sparse().keys()
            ]
        return sorted(scored, key=lambda pair: -pair[1])[: request.limit]


def _max_similarity(asked: list[list[float]], tokens: list[list[float]]) -> float:
    return math.fsum(max(_dot(one, token) for token in tokens) for one in asked)


def _dot(a: list[float], b: list[float]) -> float:
    return math.fsum(x * y for x, y in zip(a, b, strict=True))


def passes(filter: grpc.Filter, point_id: str, payload: dict[str, Any]) -> bool:
    """Tells whether a point passes; an empty filter lets everything pass."""
    return (
        all(_holds(one, point_id, payload) for one in filter.must)
        and not any(_holds(one, point_id, payload) for one in filter.must_not)
        and (not filter.should or any(_holds(one, point_id, payload) for one in filter.should))
    )


def _holds(condition: grpc.Condition, point_id: str, payload: dict[str, Any]) -> bool:
    kind = condition.WhichOneof("condition_one_of")
    if kind == "filter":
        return passes(condition.filter, point_id, payload)
    if kind == "has_id":
        return point_id in {one.uuid for one in condition.has_id.has_id}
    if kind == "is_empty":
        return not _values(payload, condition.is_empty.key)
    if kind != "field":
        raise NotImplementedError(kind)
    values = _values(payload, condition.field.key)
    if condition.field.HasField("match"):
        return any(_matches(condition.field.match, value) for value in values)
    if condition.field.HasField("datetime_range"):
        bounds = condition.field.datetime_range
        moments = [datetime.fromisoformat(value) for value in values if isinstance(value, str)]
        return any(_within(bounds, one, lambda stamp: stamp.ToDatetime(tzinfo=UTC)) for one in moments)
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return any(_within(condition.field.range, one, lambda bound: bound) for one in numbers)


def _matches(match: grpc.Match, value: Any) -> bool:
    kind = match.WhichOneof("match_value")
    asked = getattr(match, kind or "")
    if kind == "keywords":
        return isinstance(value, str) and value in asked.strings
    if kind == "integers":
        return type(value) is int and value in asked.integers
    if kind in ("keyword", "integer", "boolean"):
        return type(value) is type(asked) and value == asked
    raise NotImplementedError(kind)


def _within(bounds: Any, value: Any, read: Any) -> bool:
    return (
        (not bounds.HasField("gt") or value > read(bounds.gt))
        and (not bounds.HasField("gte") or value >= read(bounds.gte))
        and (not bounds.HasField("lt") or value < read(bounds.lt))
        and (not bounds.HasField("lte") or value <= read(bounds.lte))
    )


def _values(payload: dict[str, Any], key: str) -> list[Any]:
    value: Any = payload
    for part in key.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if value is None:
        return []
    return value if isinstance(value, list) else [value]
