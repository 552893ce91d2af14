"""Metadata by column, so that a filter over many documents is a few array operations.

Agrees with `indexers.matching` by a property test. Words, keywords and truth values are inverted (value -> documents);
numbers and dates are two parallel arrays, since ranges are asked of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from indexers.filters import Condition, Exists, Filter, MatchAny, Range
from indexers.matching import values_of, words_of
from indexers.types import FieldType, Metadata, Scalar
from indexers.values import micros, words

_NUMERIC = frozenset({FieldType.INTEGER, FieldType.FLOAT, FieldType.DATETIME})


class Columns:
    """The declared fields of a fixed list of documents."""

    def __init__(self, documents: Sequence[Metadata], fields: Mapping[str, FieldType]) -> None:
        self._count = len(documents)
        self._fields = fields
        self._columns: dict[str, _Inverted | _Numbers] = {
            name: _numbers(documents, name, declared) if declared in _NUMERIC else _inverted(documents, name, declared)
            for name, declared in fields.items()
        }

    def mask(self, filter: Filter) -> NDArray[np.bool_]:
        """Returns bool [documents]: which of them pass."""
        passing = np.ones(self._count, dtype=np.bool_)
        for condition in filter.must:
            passing &= self._holds(condition)
        for condition in filter.must_not:
            passing &= ~self._holds(condition)
        if filter.should:
            passing &= reduce(np.logical_or, [self._holds(condition) for condition in filter.should])
        return passing

    def _holds(self, condition: Condition) -> NDArray[np.bool_]:
        if isinstance(condition, Filter):
            return self.mask(condition)
        holding = np.zeros(self._count, dtype=np.bool_)
        for positions in self._positions(condition):
            holding[positions] = True
        return holding

    def _positions(self, condition: MatchAny | Range | Exists) -> Iterable[NDArray[np.int64]]:
        column = self._columns[condition.field]
        if isinstance(condition, Exists):
            return [column.present]
        if isinstance(column, _Numbers):
            return [column.within(condition) if isinstance(condition, Range) else column.equal(condition.values)]
        if isinstance(condition, Range):
            return []
        if self._fields[condition.field] is FieldType.TEXT:
            return [column.with_words(words(str(value))) for value in condition.values]
        return [column.holding(value) for value in condition.values]


@dataclass(frozen=True, slots=True)
class _Inverted:
    """Positions of the documents under each value, increasing."""

    present: NDArray[np.int64]
    documents: dict[Scalar, NDArray[np.int64]]

    def holding(self, value: Scalar) -> NDArray[np.int64]:
        return self.documents.get(value, _NOWHERE)

    def with_words(self, asked: list[str]) -> NDArray[np.int64]:
        return reduce(np.intersect1d, [self.holding(word) for word in asked])


@dataclass(frozen=True, slots=True)
class _Numbers:
    """Each value beside the position of its document."""

    present: NDArray[np.int64]
    values: NDArray[np.number[Any]]  # int64, or float64 for FLOAT
    documents: NDArray[np.int64]

    def equal(self, asked: tuple[Scalar, ...]) -> NDArray[np.int64]:
        wanted = np.array([_number(value) for value in asked], dtype=self.values.dtype)
        return self.documents[np.isin(self.values, wanted)]

    def within(self, bounds: Range) -> NDArray[np.int64]:
        passing = np.ones(len(self.values), dtype=np.bool_)
        for bound, compare in _comparisons(bounds):
            passing &= compare(self.values, bound)
        return self.documents[passing]


_NOWHERE: NDArray[np.int64] = np.empty(0, dtype=np.int64)


def _inverted(documents: Sequence[Metadata], name: str, declared: FieldType) -> _Inverted:
    positions: dict[Scalar, list[int]] = {}
    present = []
    for position, metadata in enumerate(documents):
        values = values_of(metadata, name)
        if values:
            present.append(position)
            for value in words_of(metadata, name) if declared is FieldType.TEXT else set(values):
                positions.setdefault(value, []).append(position)
    return _Inverted(
        np.array(present, dtype=np.int64),
        {value: np.array(where, dtype=np.int64) for value, where in positions.items()},
    )


def _numbers(documents: Sequence[Metadata], name: str, declared: FieldType) -> _Numbers:
    entries = [
        (position, _number(value)) for position, metadata in enumerate(documents) for value in values_of(metadata, name)
    ]
    where = np.array([position for position, _ in entries], dtype=np.int64)
    values = np.array([value for _, value in entries], dtype=np.float64 if declared is FieldType.FLOAT else np.int64)
    return _Numbers(np.unique(where), values, where)


def _number(value: Scalar) -> int | float:
    if isinstance(value, datetime):
        return micros(value)
    return value  # type: ignore[return-value]  # the schema made it a number


def _comparisons(bounds: Range) -> list[tuple[int | float, Callable[..., NDArray[np.bool_]]]]:
    asked = [
        (bounds.gt, np.greater),
        (bounds.gte, np.greater_equal),
        (bounds.lt, np.less),
        (bounds.lte, np.less_equal),
    ]
    return [(_number(bound), compare) for bound, compare in asked if bound is not None]
