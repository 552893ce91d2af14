"""Values of databases: as text that can be kept and read back with its type, and as what a JSON line can hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any, TypeAlias
from uuid import UUID

Value: TypeAlias = "str | int | float | datetime | date | Decimal | UUID | bytes"
"""What ids and watermarks may be."""

_READERS: dict[str, Callable[[str], Value]] = {
    "str": str,
    "int": int,
    "float": float,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "Decimal": Decimal,
    "UUID": UUID,
    "bytes": bytes.fromhex,
}
_FALSE = frozenset({"", "0", "f", "false", "n", "no", "off"})


def kept(value: object) -> str:
    """Writes a value with its type, as in `int:17`.

    Raises:
        TypeError: it is of no type that can be kept.
    """
    name = type(value).__name__
    if isinstance(value, datetime | date):
        return f"{name}:{value.isoformat()}"
    if isinstance(value, bytes):
        return f"{name}:{value.hex()}"
    if name not in _READERS:
        raise TypeError(f"values of type {name} have no order that could be kept")
    return f"{name}:{value}"


def read_back(text: str) -> Value:
    """Reads what `kept` wrote.

    Raises:
        ValueError: it is nothing of the kind.
    """
    name, _, value = text.partition(":")
    if name not in _READERS:
        raise ValueError(f"{name!r} is no type of values")
    return _READERS[name](value)


def plain(value: object) -> Any:
    """Returns a value as JSON holds it; None for what says nothing, as NaN. Times without a zone count as UTC.

    Raises:
        TypeError: it holds bytes or an object, which are no metadata.
    """
    if isinstance(value, datetime):
        return value.replace(tzinfo=value.tzinfo or UTC).isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal):
        return plain(int(value) if value.is_finite() and value == value.to_integral_value() else float(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list | tuple | set | frozenset):
        return [one for one in map(plain, value) if one is not None]
    if isinstance(value, bytes | bytearray | memoryview):
        raise TypeError("bytes")
    if isinstance(value, dict):
        raise TypeError("objects")
    return value if value is None or isinstance(value, str | int) else str(value)


def is_true(value: object) -> bool:
    """Tells what a column of truth says, whatever it is made of: `f`, `0`, a zero byte and NULL are false."""
    if isinstance(value, bytes | bytearray | memoryview):
        return any(bytes(value))
    return str(value).strip().lower() not in _FALSE if isinstance(value, str) else bool(value)
