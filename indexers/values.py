"""One value to a declared type, without losing anything, or a TypeMismatch that names the field.

CSV gives "2021" where JSON gives 2021 or 2021.0: all three are the integer 2021 in an INTEGER field, so a filter finds
all of them (case VEC-09). What would lose something, or is only alike (1 for true, case VEC-11), is refused.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime

from indexers.errors import TypeMismatch
from indexers.types import FieldType, Scalar

# Beyond this the stores, which compare as float64, would no longer tell neighbours apart.
MAX_INTEGER = 2**53

_INTEGER = re.compile(r"[+-]?[0-9]{1,17}(\.0{1,17})?")
_FLOAT = re.compile(r"[+-]?([0-9]{1,308}(\.[0-9]{0,308})?|\.[0-9]{1,308})([eE][+-]?[0-9]{1,3})?")
_WORD = re.compile(r"[^\W_]+")


def coerce_value(value: Scalar, declared: FieldType, field: str) -> Scalar:
    """Returns the value as the declared type has it: str, int, float, bool or an aware UTC datetime.

    Raises:
        TypeMismatch: the value cannot become that type without loss; `field` says whose it is.
    """
    coerced = _COERCIONS[declared](value)
    if coerced is None:
        bound = _BOUNDS[declared]
        raise TypeMismatch(field, bound, f"{field}: {_shown(value)} is not {bound}; change the value or the schema")
    return coerced


def words(text: str) -> list[str]:
    """Splits a text into its words for TEXT fields: maximal runs of letters and digits, case folded, in order."""
    return _WORD.findall(text.casefold())


def micros(moment: datetime) -> int:
    """Returns microseconds since 1970, exactly."""
    past = moment - _EPOCH
    return (past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds


def is_scalar(value: object) -> bool:
    """Tells whether a value may stand in metadata at all; NaN and infinities may not."""
    if isinstance(value, float):
        return math.isfinite(value)
    return isinstance(value, str | bool | int | datetime)


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def _keyword(value: Scalar) -> str | None:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        moment = _datetime(value)
        return moment.isoformat() if moment else None
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return str(int(value)) if value.is_integer() and abs(value) <= MAX_INTEGER else repr(value)
    return str(value) if abs(value) <= MAX_INTEGER else None


def _integer(value: Scalar) -> int | None:
    if isinstance(value, bool | datetime):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not _INTEGER.fullmatch(text):
            return None
        value = int(text.partition(".")[0])
    if isinstance(value, float):
        if not value.is_integer():
            return None
        value = int(value)
    return value if abs(value) <= MAX_INTEGER else None


def _float(value: Scalar) -> float | None:
    if isinstance(value, bool | datetime):
        return None
    if isinstance(value, str):
        text = value.strip()
        if not _FLOAT.fullmatch(text):
            return None
        value = float(text)
    if isinstance(value, int):
        return float(value) if abs(value) <= MAX_INTEGER else None
    return value if math.isfinite(value) else None


def _bool(value: Scalar) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _datetime(value: Scalar) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value.strip())
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    if value.tzinfo is None:
        return value.replace(tzinfo=UTC)
    try:
        return value.astimezone(UTC)
    except OverflowError:  # 0001-01-01 east of Greenwich
        return None


def _shown(value: Scalar) -> str:
    shown = repr(value)
    return shown if len(shown) <= 80 else f"{shown[:77]}..."


_COERCIONS: dict[FieldType, Callable[[Scalar], Scalar | None]] = {
    FieldType.KEYWORD: _keyword,
    FieldType.TEXT: _keyword,
    FieldType.INTEGER: _integer,
    FieldType.FLOAT: _float,
    FieldType.BOOL: _bool,
    FieldType.DATETIME: _datetime,
}

_BOUNDS = {
    FieldType.KEYWORD: "a keyword",
    FieldType.TEXT: "a text",
    FieldType.INTEGER: "a whole number within 2^53",
    FieldType.FLOAT: "a finite number",
    FieldType.BOOL: "true or false",
    FieldType.DATETIME: "an ISO 8601 date and time (UTC when it has no offset)",
}
