"""Values as JSON in bytes, for the tier that processes share; any text goes there and back, lone surrogates too."""

from __future__ import annotations

import json
from typing import Any

DAMAGED = (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError)
"""What reading raises for bytes that are not what was written, whatever they are."""


def write_json(value: object) -> bytes:
    """Returns the value as bytes."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def read_json(stored: bytes) -> Any:
    """Returns what `write_json` wrote.

    Raises:
        ValueError, RecursionError: the bytes are no JSON.
    """
    return json.loads(stored.decode("utf-8", "surrogatepass"))


def text_of(read: object) -> str:
    """Returns what was read when it is a text.

    Raises:
        TypeError: it is none.
    """
    if not isinstance(read, str):
        raise TypeError("not a text")
    return read
