"""Writes a filter as text, in the language that `indexers.filter_text` reads."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from indexers.errors import FilterEmpty
from indexers.filter_text import WORDS
from indexers.filters import Condition, Exists, Filter, MatchAny
from indexers.types import Scalar

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_OR, _AND, _ONE = 1, 2, 3  # how closely a piece of text holds together


def format_filter(filter: Filter) -> str:
    """Writes a filter so that `parse_filter` gives one that means the same; datetimes become texts.

    Raises:
        FilterEmpty: the filter, or a part of it, has no conditions.
    """
    return _format(filter)[0]


def _format(condition: Condition) -> tuple[str, int]:
    if isinstance(condition, Filter):
        return _format_filter(condition)
    field = _format_field(condition.field)
    if isinstance(condition, Exists):
        return f"EXISTS({field})", _ONE
    if isinstance(condition, MatchAny):
        return _format_match(field, condition, negated=False), _ONE
    bounds = [
        f"{sign} {_format_value(value)}"
        for sign, value in ((">", condition.gt), (">=", condition.gte), ("<", condition.lt), ("<=", condition.lte))
        if value is not None
    ]
    text = _joined("AND", bounds, _ONE)[0]
    return f"{field} ({text})" if len(bounds) > 1 else f"{field} {text}", _ONE


def _format_filter(filter: Filter) -> tuple[str, int]:
    should = [_format(condition) for condition in filter.should]
    parts = [_format(condition) for condition in filter.must]
    if len(should) > 1:
        parts.append(_joined("OR", [_wrapped(piece, _AND) for piece in should], _OR))
    parts += should if len(should) == 1 else []
    parts += [(_format_negated(condition), _ONE) for condition in filter.must_not]
    return parts[0] if len(parts) == 1 else _joined("AND", [_wrapped(piece, _AND) for piece in parts], _AND)


def _format_negated(condition: Condition) -> str:
    if isinstance(condition, MatchAny):
        return _format_match(_format_field(condition.field), condition, negated=True)
    return f"NOT {_wrapped(_format(condition), _ONE)}"


def _format_match(field: str, condition: MatchAny, *, negated: bool) -> str:
    values = ", ".join(_format_value(value) for value in condition.values)
    if len(condition.values) == 1:
        return f"{field} {'!=' if negated else '='} {values}"
    return f"{field} {'NOT IN' if negated else 'IN'} ({values})"


def _joined(word: str, pieces: Sequence[str], level: int) -> tuple[str, int]:
    if not pieces:
        raise FilterEmpty("filter", "at least one condition", "a filter or range has no conditions; leave it out")
    return f" {word} ".join(pieces), level if len(pieces) > 1 else _ONE


def _wrapped(piece: tuple[str, int], level: int) -> str:
    text, own = piece
    return text if own >= level else f"({text})"


def _format_field(field: str) -> str:
    plain = _PLAIN_NAME.fullmatch(field) and field.upper() not in WORDS
    return field if plain else f"`{field}`"


def _format_value(value: Scalar) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    return json.dumps(value if isinstance(value, str) else value.isoformat(), ensure_ascii=False)
