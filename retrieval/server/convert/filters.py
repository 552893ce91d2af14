"""Filters: protobuf messages to the filter tree and back.

Only what the wire itself leaves open is checked here. The parser bounds the nesting, so recursion is safe; fields,
types, emptiness and depth are checked against the collection's schema (`indexers.schema.coerce_filter`).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from headrace.v1 import common_pb2
from indexers.filters import Condition, Exists, Filter, MatchAny, Range
from retrieval.errors import InvalidRequest
from retrieval.server.convert.metadata import datetime_from_pb, datetime_to_pb, scalar_from_pb, scalar_to_pb


def filter_from_pb(message: common_pb2.Filter, path: str = "filter") -> Filter:
    """Returns the filter as values; `path` names the field in errors.

    Raises:
        InvalidRequest: a condition without a kind, or a value that is not usable.
    """
    return Filter(
        must=_conditions(message.must, f"{path}.must"),
        should=_conditions(message.should, f"{path}.should"),
        must_not=_conditions(message.must_not, f"{path}.must_not"),
    )


def filter_to_pb(filter: Filter) -> common_pb2.Filter:
    """Returns the filter as a message."""
    return common_pb2.Filter(
        must=[_condition_to_pb(condition) for condition in filter.must],
        should=[_condition_to_pb(condition) for condition in filter.should],
        must_not=[_condition_to_pb(condition) for condition in filter.must_not],
    )


def _conditions(messages: Sequence[common_pb2.Condition], path: str) -> tuple[Condition, ...]:
    return tuple(_condition(message, f"{path}[{at}]") for at, message in enumerate(messages))


def _condition(message: common_pb2.Condition, path: str) -> Condition:
    kind = message.WhichOneof("kind")
    if kind == "filter":
        return filter_from_pb(message.filter, f"{path}.filter")
    if kind == "match_any":
        return _match_any(message.match_any, f"{path}.match_any")
    if kind == "number_range":
        return _number_range(message.number_range)
    if kind == "datetime_range":
        return _datetime_range(message.datetime_range, f"{path}.datetime_range")
    if kind == "exists":
        return Exists(message.exists.field)
    raise InvalidRequest(path, "one of the kinds", f"{path} has no condition; give one or leave it out")


def _match_any(message: common_pb2.MatchAny, path: str) -> MatchAny:
    values = enumerate(message.values)
    return MatchAny(message.field, tuple(scalar_from_pb(value, f"{path}.values[{at}]") for at, value in values))


def _number_range(message: common_pb2.NumberRange) -> Range:
    return Range(
        message.field,
        gt=message.gt if message.HasField("gt") else None,
        gte=message.gte if message.HasField("gte") else None,
        lt=message.lt if message.HasField("lt") else None,
        lte=message.lte if message.HasField("lte") else None,
    )


def _datetime_range(message: common_pb2.DatetimeRange, path: str) -> Range:
    return Range(
        message.field,
        gt=datetime_from_pb(message.gt, f"{path}.gt") if message.HasField("gt") else None,
        gte=datetime_from_pb(message.gte, f"{path}.gte") if message.HasField("gte") else None,
        lt=datetime_from_pb(message.lt, f"{path}.lt") if message.HasField("lt") else None,
        lte=datetime_from_pb(message.lte, f"{path}.lte") if message.HasField("lte") else None,
    )


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
    bounds = {"gt": range.gt, "gte": range.gte, "lt": range.lt, "lte": range.lte}
    times = {name: datetime_to_pb(bound) for name, bound in bounds.items() if isinstance(bound, datetime)}
    if times:
        return common_pb2.Condition(datetime_range=common_pb2.DatetimeRange(field=range.field, **times))
    numbers = {name: float(bound) for name, bound in bounds.items() if isinstance(bound, (int, float))}
    return common_pb2.Condition(number_range=common_pb2.NumberRange(field=range.field, **numbers))
