"""The comparisons that frameworks write in their filters, as conditions of ours.

LlamaIndex and Haystack know the same comparisons under nearly the same names; each adapter walks its own tree and asks
here for the leaves and the knots. What we cannot ask exactly is refused: a filter that is nearly right is a leak.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from headrace.v1 import common_pb2 as common
from retrieval.adapters.errors import HeadraceError, invalid
from retrieval.errors import InvalidRequest
from retrieval.server.convert.metadata import datetime_to_pb, scalar_to_pb

MAX_DEPTH = 16  # the server's bound on levels
MAX_NUMBER = 2**53  # beyond this, neighbours are one number to the server's ranges

_BOUNDS = {">": "gt", ">=": "gte", "<": "lt", "<=": "lte"}
_OPERATORS = ("==", "!=", *_BOUNDS, "in", "not in")


def comparison(field: str, operator: str, value: object, at: str) -> common.Condition:
    """Returns one comparison of a field; `at` names its place in errors.

    `== None` holds for documents without the field, as do `!=` and `not in`. A text or time after `<` is a point in
    time. On a field with several values, one that fits is enough.

    Raises:
        HeadraceError: an operator that we do not have, or a value that it cannot take.
    """
    if operator not in _OPERATORS:
        raise _refused(f"{at}.operator", f"one of {', '.join(_OPERATORS)}", operator)
    if operator in _BOUNDS:
        return _range(field, _BOUNDS[operator], value, f"{at}.value")
    if value is None:
        return _presence(field, operator, f"{at}.value")
    values = _listed(value, f"{at}.value") if operator.endswith("in") else [value]
    messages = [_scalar(each, f"{at}.value") for each in values]
    found = common.Condition(match_any=common.MatchAny(field=field, values=messages))
    return found if operator in {"==", "in"} else none_of([found])


def all_of(conditions: Sequence[common.Condition]) -> common.Condition:
    """Returns a condition that holds when all of these do."""
    return common.Condition(filter=common.Filter(must=conditions))


def any_of(conditions: Sequence[common.Condition]) -> common.Condition:
    """Returns a condition that holds when at least one of these does."""
    return common.Condition(filter=common.Filter(should=conditions))


def none_of(conditions: Sequence[common.Condition]) -> common.Condition:
    """Returns a condition that holds when none of these does."""
    return common.Condition(filter=common.Filter(must_not=conditions))


def as_filter(condition: common.Condition) -> common.Filter:
    """Returns a condition as a whole filter."""
    return condition.filter if condition.HasField("filter") else common.Filter(must=[condition])


def members(given: object, at: str, depth: int) -> Sequence[Any]:
    """Returns what a knot of the tree joins; `depth` counts the knots above it, from 1.

    Raises:
        HeadraceError: it is no list, joins nothing, or lies deeper than the server reads.
    """
    listed = _listed(given, at)
    if not listed:
        raise invalid(at, "at least one condition", f"{at} is empty; leave it out or add a condition")
    if depth > MAX_DEPTH:
        bound = f"at most {MAX_DEPTH} levels"
        raise invalid(at, bound, f"the filter nests deeper than {MAX_DEPTH} levels; simplify it")
    return listed


def _range(field: str, bound: str, value: object, at: str) -> common.Condition:
    if isinstance(value, str | datetime):
        moment = {bound: datetime_to_pb(_moment(value, at))}
        return common.Condition(datetime_range=common.DatetimeRange(field=field, **moment))
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= MAX_NUMBER:
        raise _refused(at, "a number within 2^53, or a time as ISO 8601", value)
    return common.Condition(number_range=common.NumberRange(field=field, **{bound: float(value)}))


def _moment(value: str | datetime, at: str) -> datetime:
    if isinstance(value, datetime):
        return value
    try:
        return datetime.fromisoformat(value)
    except ValueError as error:
        raise _refused(at, "a number within 2^53, or a time as ISO 8601", value) from error


def _scalar(value: object, at: str) -> common.MetadataValue:
    if not isinstance(value, str | int | float | datetime) or (isinstance(value, float) and not math.isfinite(value)):
        raise _refused(at, "a text, a number, a truth value or a time", value)
    try:
        return scalar_to_pb(value)
    except InvalidRequest as error:
        raise invalid(at, error.bound, str(error)) from error


def _listed(value: object, at: str) -> Sequence[Any]:
    if not isinstance(value, list | tuple):
        raise _refused(at, "a list", value)
    return value


def _presence(field: str, operator: str, at: str) -> common.Condition:
    if operator not in {"==", "!="}:
        raise _refused(at, "a list", None)
    exists = common.Condition(exists=common.Exists(field=field))
    return exists if operator == "!=" else none_of([exists])


def _refused(field: str, bound: str, value: object) -> HeadraceError:
    shown = repr(value)
    shown = shown if len(shown) <= 80 else f"{shown[:77]}..."
    return invalid(field, bound, f"{field} is {shown}; give {bound}")
