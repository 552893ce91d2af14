"""How a stored value is compared with a value as a person writes it in the settings.

By the stored value's type, since the same number, time or word is written in several ways, and a policy that misses one
of them fails open.
"""

from __future__ import annotations

import math
import unicodedata
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from functools import lru_cache

from indexers.types import Scalar

_TRUTH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}
_REMEMBERED_TEXTS = 4096


def is_written(value: Scalar, text: str) -> bool:
    """Tells whether a text means this value.

    A number equals any writing of it, a truth value `true` or `yes`, a time the same moment in ISO 8601, in UTC where
    it names no zone. Texts are equal without regard to case, surrounding spaces and how accents are composed.
    """
    if isinstance(value, bool):  # before int, of which it is a kind
        return _TRUTH.get(_folded(text)) is value
    if isinstance(value, int):
        return _number(text) == value
    if isinstance(value, float):
        # A decimal fraction is stored as what is nearest to it.
        number = _number(text)
        return number is not None and float(number) == value
    if isinstance(value, datetime):
        return _moment(text) == value
    return _folded(value) == _folded(text)


@lru_cache(_REMEMBERED_TEXTS)
def _number(text: str) -> Decimal | None:
    try:
        number = Decimal(text.strip())
    except InvalidOperation:
        return None
    return number if number.is_finite() and math.isfinite(float(number)) else None


@lru_cache(_REMEMBERED_TEXTS)
def _moment(text: str) -> datetime | None:
    try:
        moment = datetime.fromisoformat(text.strip().upper())
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _folded(text: str) -> str:
    """Returns the text for caseless comparison (The Unicode Standard, D145), composed, without surrounding spaces."""
    if text.isascii():
        return text.strip().casefold()
    return unicodedata.normalize("NFC", unicodedata.normalize("NFD", text).casefold()).strip()
