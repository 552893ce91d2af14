"""Filters: protobuf messages to the filter tree and back.

Depth is bounded while converting, before anything recurses over the tree again; field names and types are checked
later, against the collection's schema.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal

from headrace.v1 import common_pb2

from indexers.filters import Condition, Exists, Filter, MatchAny, Range
from indexers.types import Scalar
from retrieval.errors import InvalidRequest
from retrieval.server.convert.metadata import datetime_from_pb, datetime_to_pb, scalar_from_pb, scalar_to_pb

MAX_DEPTH = 16
MAX_CONDITIONS = 1024
_BOUNDS: Final[tuple[Literal["gt"], Literal["gte"], Literal["lt"], Literal["lte"]]] = ("gt", "gte", "lt", "lte")


def filter_from_pb(message: common_pb2.Filter, path: str = "filter") -> Filter:
    """Returns the filter as values; `path` names the field in errors.

    Raises:
        InvalidRequest: nested too deep, too many conditions, a condition without a kind, or a value that is not usable.
    """
    return _Reader().filter(message, path, 1)


def filter_to_pb(filter: Filter) -> common_pb2.Filter:
    """Returns the filter as a message."""
    return common_pb2.Filter(
        must=[_condition_to_pb(condition) for condition in filter.must],
        should=[_condition_to_pb(condition) for condition in filter.should],
        must_not=[_condition_to_pb(condition) for condition in filter.must_not],
    )


class _Reader:
    """Reads one filter and counts its conditions."""

    def __init__(self) -> None:
        self._count = 0

    def filter(self, message: common_pb2.Filter, path: str, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            bound = f"at most {MAX_DEPTH} filters inside each other"
            raise InvalidRequest("filter", bound, f"the filter is nested deeper than {MAX_DEPTH}; flatten it")
        return Filter(
            must=self._conditions(message.must, f"{path}.must", depth),
            should=self._conditions(message.should, f"{path}.should", depth),
            must_not=self._conditions(message.must_not, f"{path}.must_not", depth),
        )

    def _conditions(self, messages: Sequence[common_pb2.Condition], path: str, depth: int) -> tuple[Condition, ...]:
        self._count += len(messages)
        if self._count > MAX_CONDITIONS:
            bound = f"at most {MAX_CONDITIONS} conditions"
            raise InvalidRequest("filter", bound, f"the filter has more than {MAX_CONDITIONS} conditions; split it")
        return tuple(self._condition(message, f"{path}[{at}]", depth) for at, message in enumerate(messages))

    def _condition(self, message: common_pb2.Condition, path: str, depth: int) -> Condition:
        kind = message.WhichOneof("kind")
        if kind == "filter":
            return self.filter(message.filter, f"{path}.filter", depth + 1)
        if kind == "match_any":
            values = enumerate(message.match_any.values)
            return MatchAny(
                message.match_any.field,
                tuple(scalar_from_pb(value, f"{path}.match_any.values[{at}]") for at, value in values),
            )
        if kind == "number_range":
            return _number_range(message.number_range, f"{path}.number_range")
        if kind == "datetime_range":
            return _datetime_range(message.datetime_range, f"{path}.datetime_range")
        if kind == "exists":
            return Exists(message.exists.field)
        raise InvalidRequest(path, "one of the kinds", f"{path} has no condition; give one or leave it out")


def _number_range(message: common_pb2.NumberRange, path: str) -> Range:
    bounds = {name: getattr(message, name) for name in _BOUNDS if message.HasField(name)}
    _require_bounds(bounds, path)
    for name, value in bounds.items():
        if math.isnan(value):
            raise InvalidRequest(f"{path}.{name}", "a number", f"{path}.{name} is not a number; send one")
    return Range(message.field, **bounds)


def _datetime_range(message: common_pb2.DatetimeRange, path: str) -> Range:
    bounds = {
        name: datetime_from_pb(getattr(message, name), f"{path}.{name}") for name in _BOUNDS if message.HasField(name)
    }
    _require_bounds(bounds, path)
    return Range(message.field, **bounds)


def _require_bounds(bounds: Mapping[Any, object], path: str) -> None:
    if not bounds:
        raise InvalidRequest(path, "at least one bound", f"{path} has no bound; give one, or use exists")


def _condition_to_pb(condition: Condition) -> common_pb2.Condition:
    if isinstance(condition, Filter):
        return common_pb2.Condition(filter=filter_to_pb(condition))
    if isinstance(condition, Exists):
        return common_pb2.Condition(exists=common_pb2.Exists(field=condition.field))
    if isinstance(condition, MatchAny):
        values = [scalar_to_pb(value) for value in condition.values]
        return common_pb2.Condition(match_any=common_pb2.MatchAny(field=condition.field, values=values))
    return _range_to_pb(condition)


def _range_to_pb(range: Range) -> common_pb2.Condition:
    bounds = {name: getattr(range, name) for name in _BOUNDS}
    given: dict[str, Scalar] = {name: value for name, value in bounds.items() if value is not None}
    if any(isinstance(value, datetime) for value in given.values()):
        stamps = {name: datetime_to_pb(value) for name, value in given.items() if isinstance(value, datetime)}
        return common_pb2.Condition(datetime_range=common_pb2.DatetimeRange(field=range.field, **stamps))
    numbers = {name: float(value) for name, value in given.items() if isinstance(value, (int, float))}
    return common_pb2.Condition(number_range=common_pb2.NumberRange(field=range.field, **numbers))
