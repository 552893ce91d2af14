"""Metadata as the stores' payload: only what is declared, in the shapes that every store compares the same way.

Truth values become the keywords "true" and "false", since a store's client turns true into the integer 1. Texts become
their distinct words, so that what is a word is decided here and not by each store. Dates become RFC 3339 in UTC.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TypeAlias

from indexers.matching import values_of, words_of
from indexers.types import FieldType, Metadata, Scalar

PayloadValue: TypeAlias = "str | int | float"
Payload: TypeAlias = "dict[str, list[PayloadValue]]"


def payload_of(metadata: Metadata, fields: Mapping[str, FieldType]) -> Payload:
    """Returns the payload of coerced metadata; fields without a value are left out."""
    payload: Payload = {}
    for name, declared in fields.items():
        values = values_of(metadata, name)
        if values:
            payload[name] = _values(values, metadata, name, declared)
    return payload


def payload_value(value: Scalar) -> PayloadValue:
    """Returns one coerced value as payloads and conditions have it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.isoformat()
    return value


def _values(values: tuple[Scalar, ...], metadata: Metadata, name: str, declared: FieldType) -> list[PayloadValue]:
    if declared is FieldType.TEXT:
        return sorted(words_of(metadata, name)) or [""]  # a text without words still exists
    return [payload_value(value) for value in values]
