"""Metadata of documents: protobuf values to Python values and back.

Kinds stay apart (`True` is no integer); whether a value fits its declared field is for the collection's schema to say.
Imports no array library, so that the client can use it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, MutableMapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from google.protobuf.timestamp_pb2 import Timestamp

from headrace.v1 import common_pb2
from retrieval.errors import InvalidRequest

if TYPE_CHECKING:
    from indexers.types import Metadata, Scalar

INTEGER_BOUND = "a 64-bit integer"


def scalar_to_pb(value: Scalar) -> common_pb2.MetadataValue:
    """Returns the value as a message.

    Raises:
        InvalidRequest: the value has no form on the wire.
    """
    if isinstance(value, bool):
        return common_pb2.MetadataValue(bool_value=value)
    if isinstance(value, str):
        return common_pb2.MetadataValue(string_value=value)
    if isinstance(value, int):
        if not -(2**63) <= value < 2**63:
            raise InvalidRequest("value", INTEGER_BOUND, f"{value} is not {INTEGER_BOUND}; send it as a keyword")
        return common_pb2.MetadataValue(integer_value=value)
    if isinstance(value, float):
        return common_pb2.MetadataValue(float_value=value)
    return common_pb2.MetadataValue(datetime_value=datetime_to_pb(value))


def metadata_to_pb(metadata: Metadata) -> dict[str, common_pb2.MetadataValue]:
    """Returns the metadata as a map of messages."""
    return {name: _value_to_pb(value) for name, value in metadata.items()}


def fill_metadata(target: MutableMapping[str, common_pb2.MetadataValue], metadata: Metadata) -> None:
    """Writes the metadata into a message's map; what most values are goes in without a message between."""
    for name, value in metadata.items():
        if type(value) is str:
            target[name].string_value = value
        elif type(value) is int:
            target[name].integer_value = value
        else:
            target[name].MergeFrom(_value_to_pb(value))


def metadata_from_pb(metadata: Mapping[str, common_pb2.MetadataValue], path: str) -> Metadata:
    """Returns the metadata as values; `path` names the field in errors.

    Raises:
        InvalidRequest: a value is not given, not finite, out of range, or a list inside a list.
    """
    return {name: _value_from_pb(value, f"{path}.{name}") for name, value in metadata.items()}


def scalar_from_pb(value: common_pb2.MetadataValue, path: str) -> Scalar:
    """Returns a single value; `path` names the field in errors.

    Raises:
        InvalidRequest: the value is not given, not finite, out of range, or a list.
    """
    kind = value.WhichOneof("kind")
    if kind is None:
        raise InvalidRequest(path, "one of the kinds", f"{path} has no value; give one or leave the entry out")
    if kind == "list_value":
        raise InvalidRequest(path, "a single value", f"{path} is a list where a single value belongs; take one value")
    if kind == "datetime_value":
        return datetime_from_pb(value.datetime_value, path)
    if kind == "float_value" and not math.isfinite(value.float_value):
        raise InvalidRequest(path, "a finite number", f"{path} is {value.float_value}; send a finite number")
    scalar: Scalar = getattr(value, kind)
    return scalar


def datetime_to_pb(value: datetime) -> Timestamp:
    """Returns the point in time as a message, to the microsecond; a time without a zone is taken as UTC."""
    stamp = Timestamp()
    stamp.FromDatetime(value)
    return stamp


def datetime_from_pb(stamp: Timestamp, path: str) -> datetime:
    """Returns the point in time in UTC, to the microsecond.

    Raises:
        InvalidRequest: the time is outside the years 1 to 9999.
    """
    try:
        return stamp.ToDatetime(tzinfo=UTC)
    except (ValueError, OverflowError) as error:
        bound = "a time in the years 1 to 9999"
        raise InvalidRequest(path, bound, f"{path} is not {bound}; correct its seconds and nanos") from error


def _value_to_pb(value: Scalar | tuple[Scalar, ...]) -> common_pb2.MetadataValue:
    if isinstance(value, Sequence) and not isinstance(value, str):
        values = [scalar_to_pb(item) for item in value]
        return common_pb2.MetadataValue(list_value=common_pb2.MetadataList(values=values))
    return scalar_to_pb(value)


def _value_from_pb(value: common_pb2.MetadataValue, path: str) -> Scalar | tuple[Scalar, ...]:
    if value.WhichOneof("kind") == "list_value":
        return tuple(scalar_from_pb(item, f"{path}[{at}]") for at, item in enumerate(value.list_value.values))
    return scalar_from_pb(value, path)
