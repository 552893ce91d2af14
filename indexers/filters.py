"""The filter tree: what a caller may ask of metadata, as values.

Three things are kept apart. No filter (None) restricts nothing. A filter without conditions is refused, since it is
nearly always a mistake of the program that built it. A filter that matches nothing gives an empty result.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, Union

from indexers.types import Scalar


@dataclass(frozen=True, slots=True)
class MatchAny:
    """True when the field holds at least one of the values; never true for an empty list of values.

    On a TEXT field a value matches when all its words occur in the field, ignoring case.
    """

    field: str
    values: tuple[Scalar, ...]


@dataclass(frozen=True, slots=True)
class Range:
    """True when the field (INTEGER, FLOAT, DATETIME) holds a value within all the bounds that are not None."""

    field: str
    gt: Scalar | None = None
    gte: Scalar | None = None
    lt: Scalar | None = None
    lte: Scalar | None = None


@dataclass(frozen=True, slots=True)
class Exists:
    """True when the document has a value for the field."""

    field: str


@dataclass(frozen=True, slots=True)
class Filter:
    """True when every `must` holds, no `must_not` holds, and, if there is any `should`, at least one of them holds."""

    must: tuple[Condition, ...] = ()
    should: tuple[Condition, ...] = ()
    must_not: tuple[Condition, ...] = ()


Condition: TypeAlias = Union[MatchAny, Range, Exists, "Filter"]
