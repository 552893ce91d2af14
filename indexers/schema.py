"""The declared schema at work: metadata and filters are coerced to it once, at the edge, and trusted from there on.

What is not declared is kept as it came and cannot be filtered by. Bounds are checked here, so that no stored metadata
and no filter can be larger than the stores are prepared for.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import TypeAlias, cast

from indexers.errors import FilterEmpty, FilterTooDeep, InvalidDocument, TypeMismatch, UnknownField
from indexers.filters import Condition, Filter, MatchAny, Range
from indexers.types import EncodedDocument, FieldType, Metadata, Scalar
from indexers.values import coerce_value, is_scalar, words

MAX_KEYS = 256
MAX_KEY_CHARS = 128
MAX_VALUES = 1_000  # of one key
MAX_METADATA_BYTES = 64 * 1024  # as JSON
MAX_DEPTH = 16
MAX_CONDITIONS = 1_000
MAX_FILTER_VALUES = 10_000

RANGED = frozenset({FieldType.INTEGER, FieldType.FLOAT, FieldType.DATETIME})

_Json: TypeAlias = "str | int | float | bool | dict[str, str] | list[str | int | float | bool | dict[str, str]]"


def coerce_metadata(metadata: Metadata, fields: Mapping[str, FieldType]) -> Metadata:
    """Returns the metadata with every declared key coerced to its type; other keys are kept as they are.

    Raises:
        TypeMismatch: a value cannot become the declared type; names `metadata.<key>`.
        InvalidDocument: too many keys or values, a key or the whole too long, NaN, infinities, no valid Unicode.
    """
    if len(metadata) > MAX_KEYS:
        raise _too_large("metadata", f"at most {MAX_KEYS} keys")
    coerced = {key: _coerce_entry(key, value, fields.get(key)) for key, value in metadata.items()}
    try:
        size_bytes = len(metadata_to_json(coerced).encode())
    except UnicodeEncodeError:
        raise _too_large("metadata", "valid Unicode") from None
    if size_bytes > MAX_METADATA_BYTES:
        raise _too_large("metadata", f"at most {MAX_METADATA_BYTES} bytes")
    return coerced


def coerce_document(document: EncodedDocument, fields: Mapping[str, FieldType]) -> EncodedDocument:
    """Returns the document with its metadata coerced.

    Raises:
        TypeMismatch, InvalidDocument: as `coerce_metadata`.
    """
    metadata = coerce_metadata(document.document.metadata, fields)
    return replace(document, document=replace(document.document, metadata=metadata))


def coerce_filter(filter: Filter, fields: Mapping[str, FieldType]) -> Filter:
    """Returns the filter with every value coerced to its field's type; coercing twice changes nothing.

    Raises:
        UnknownField: a condition names a field that is not declared.
        TypeMismatch: a value cannot become the type, or a range asks for a type that has no order here.
        FilterEmpty: the filter, or one inside it, has no conditions, or a range has no bounds.
        FilterTooDeep: deeper than 16, more than 1,000 conditions or 10,000 values.
    """
    return _FilterCoercion(fields).filter(filter, 1)


def coerce_delete_filter(filter: Filter, fields: Mapping[str, FieldType]) -> Filter:
    """Returns the filter of a deletion, coerced. It must not hold a match without values.

    Such a match is true of nothing, so under `must_not` it is true of everything: a program whose list of exceptions
    came out empty would delete a whole collection.

    Raises:
        FilterEmpty: a match has no values; and what `coerce_filter` raises.
    """
    coerced = coerce_filter(filter, fields)
    _check_values(coerced)
    return coerced


def metadata_to_json(metadata: Metadata) -> str:
    """Writes metadata for the record: datetimes are tagged, everything else is plain JSON."""
    return json.dumps({key: _to_json(value) for key, value in metadata.items()}, ensure_ascii=False, allow_nan=False)


def metadata_from_json(text: str) -> Metadata:
    """Reads what `metadata_to_json` wrote."""
    return {key: _from_json(value) for key, value in json.loads(text).items()}


def _check_values(filter: Filter) -> None:
    for condition in (*filter.must, *filter.should, *filter.must_not):
        if isinstance(condition, Filter):
            _check_values(condition)
        elif isinstance(condition, MatchAny) and not condition.values:
            field = f"filter.{condition.field}"
            raise FilterEmpty(field, "at least one value", f"{field}: a deletion needs at least one value to match")


def _coerce_entry(
    key: str, value: Scalar | tuple[Scalar, ...], declared: FieldType | None
) -> Scalar | tuple[Scalar, ...]:
    if not 0 < len(key) <= MAX_KEY_CHARS:
        raise _too_large(f"metadata.{key[:MAX_KEY_CHARS]}", f"keys of 1 to {MAX_KEY_CHARS} characters")
    field = f"metadata.{key}"
    if not isinstance(value, tuple):
        return _coerce_one(value, declared, field)
    if len(value) > MAX_VALUES:
        raise _too_large(field, f"at most {MAX_VALUES} values")
    return tuple(_coerce_one(one, declared, field) for one in value)


def _coerce_one(value: Scalar, declared: FieldType | None, field: str) -> Scalar:
    if not is_scalar(value):
        bound = "a string, finite number, true, false or datetime"
        raise TypeMismatch(field, bound, f"{field}: a value is not {bound}; leave it out")
    if declared is not None:
        return coerce_value(value, declared, field)
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        bound = "a 64-bit integer"
        raise TypeMismatch(field, bound, f"{field}: {str(value)[:40]} is not {bound}; send it as a string")
    return coerce_value(value, FieldType.DATETIME, field) if isinstance(value, datetime) else value


def _too_large(field: str, bound: str) -> InvalidDocument:
    return InvalidDocument(field, bound, f"{field}: only {bound} allowed; shorten it")


def _to_json(value: Scalar | tuple[Scalar, ...]) -> _Json:
    if isinstance(value, tuple):
        return [cast("str | int | float | bool | dict[str, str]", _to_json(one)) for one in value]
    if isinstance(value, datetime):
        return {"datetime": value.isoformat()}
    return value


def _from_json(value: _Json) -> Scalar | tuple[Scalar, ...]:
    if isinstance(value, list):
        return tuple(cast("Scalar", _from_json(one)) for one in value)
    if isinstance(value, dict):
        return datetime.fromisoformat(value["datetime"])
    return value


class _FilterCoercion:
    """One walk over a filter, with the counts that bound it; never recurses deeper than the bound."""

    def __init__(self, fields: Mapping[str, FieldType]) -> None:
        self._fields = fields
        self._conditions = 0
        self._values = 0

    def filter(self, filter: Filter, depth: int) -> Filter:
        if depth > MAX_DEPTH:
            raise FilterTooDeep(
                "filter", f"at most {MAX_DEPTH} levels", f"the filter nests deeper than {MAX_DEPTH} levels"
            )
        if not (filter.must or filter.should or filter.must_not):
            raise FilterEmpty("filter", "at least one condition", "a filter has no conditions; leave it out or add one")
        return Filter(
            must=self._all(filter.must, depth),
            should=self._all(filter.should, depth),
            must_not=self._all(filter.must_not, depth),
        )

    def _all(self, conditions: tuple[Condition, ...], depth: int) -> tuple[Condition, ...]:
        return tuple(self._condition(condition, depth) for condition in conditions)

    def _condition(self, condition: Condition, depth: int) -> Condition:
        self._conditions += 1
        if self._conditions > MAX_CONDITIONS:
            bound = f"at most {MAX_CONDITIONS} conditions"
            raise FilterTooDeep("filter", bound, f"the filter has more than {MAX_CONDITIONS} conditions; use fewer")
        if isinstance(condition, Filter):
            return self.filter(condition, depth + 1)
        declared = self._declared(condition.field)
        if isinstance(condition, MatchAny):
            return self._match(condition, declared)
        return self._range(condition, declared) if isinstance(condition, Range) else condition

    def _declared(self, field: str) -> FieldType:
        declared = self._fields.get(field)
        if declared is None:
            known = ", ".join(sorted(self._fields)) or "none"
            raise UnknownField(
                f"filter.{field[:MAX_KEY_CHARS]}",
                f"declared fields: {known}",
                f"field {field[:MAX_KEY_CHARS]!r} is not declared (declared: {known}); declare it or leave it out",
            )
        return declared

    def _match(self, condition: MatchAny, declared: FieldType) -> MatchAny:
        self._values += len(condition.values)
        if self._values > MAX_FILTER_VALUES:
            bound = f"at most {MAX_FILTER_VALUES} values"
            raise FilterTooDeep("filter", bound, f"the filter has more than {MAX_FILTER_VALUES} values; use fewer")
        field = f"filter.{condition.field}"
        values = tuple(coerce_value(value, declared, field) for value in condition.values)
        if declared is FieldType.TEXT and not all(words(str(value)) for value in values):
            raise TypeMismatch(field, "a text with words", f"{field}: a text to look for has no words; leave it out")
        return MatchAny(condition.field, values)

    def _range(self, condition: Range, declared: FieldType) -> Range:
        field = f"filter.{condition.field}"
        if declared not in RANGED:
            bound = "integer, float and datetime fields"
            raise TypeMismatch(
                field, bound, f"{field}: ranges work on {bound}, this one is {declared.value}; use a match"
            )
        asked = (condition.gt, condition.gte, condition.lt, condition.lte)
        if all(bound is None for bound in asked):
            raise FilterEmpty(field, "at least one bound", f"{field}: the range has no bounds; leave it out or add one")
        gt, gte, lt, lte = (None if bound is None else coerce_value(bound, declared, field) for bound in asked)
        return Range(condition.field, gt=gt, gte=gte, lt=lt, lte=lte)
