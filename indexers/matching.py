"""What a filter means, as a pure function: every index must agree with it, and the final list is re-checked by it.

Both sides must have been coerced by the schema; values of different types are never equal here, so true is not 1.
"""

from __future__ import annotations

from collections.abc import Mapping

from indexers.filters import Condition, Exists, Filter, MatchAny, Range
from indexers.types import FieldType, Metadata, Scalar
from indexers.values import words


def matches(filter: Filter | None, metadata: Metadata, fields: Mapping[str, FieldType]) -> bool:
    """Tells whether metadata passes the filter; no filter passes everything."""
    if filter is None:
        return True
    return (
        all(_holds(condition, metadata, fields) for condition in filter.must)
        and not any(_holds(condition, metadata, fields) for condition in filter.must_not)
        and (not filter.should or any(_holds(condition, metadata, fields) for condition in filter.should))
    )


def values_of(metadata: Metadata, field: str) -> tuple[Scalar, ...]:
    """Returns the values of a field: none, one or many."""
    value = metadata.get(field, ())
    return value if isinstance(value, tuple) else (value,)


def words_of(metadata: Metadata, field: str) -> set[str]:
    """Returns the distinct words of a TEXT field, over all its values."""
    return {word for value in values_of(metadata, field) for word in words(str(value))}


def _holds(condition: Condition, metadata: Metadata, fields: Mapping[str, FieldType]) -> bool:
    if isinstance(condition, Filter):
        return matches(condition, metadata, fields)
    if isinstance(condition, Exists):
        return bool(values_of(metadata, condition.field))
    if isinstance(condition, Range):
        return any(_within(value, condition) for value in values_of(metadata, condition.field))
    if fields[condition.field] is FieldType.TEXT:
        return _has_words(condition, words_of(metadata, condition.field))
    return any(_equals_any(value, condition.values) for value in values_of(metadata, condition.field))


def _equals_any(value: Scalar, asked: tuple[Scalar, ...]) -> bool:
    return any(type(value) is type(one) and value == one for one in asked)


def _has_words(condition: MatchAny, present: set[str]) -> bool:
    return any(present.issuperset(words(str(value))) for value in condition.values)


def _within(value: Scalar, bounds: Range) -> bool:
    # The schema made all of them one ordered type, which the checker cannot see.
    return (
        (bounds.gt is None or value > bounds.gt)  # type: ignore[operator]
        and (bounds.gte is None or value >= bounds.gte)  # type: ignore[operator]
        and (bounds.lt is None or value < bounds.lt)  # type: ignore[operator]
        and (bounds.lte is None or value <= bounds.lte)  # type: ignore[operator]
    )
