"""What can go wrong with a request to an OpenAI-compatible server, without a word of the server's."""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from datetime import UTC
from email.utils import parsedate_to_datetime

_TRANSIENT_STATUSES = frozenset({408, 409, 425, 429})
_REASONS = {
    401: "it refused the credentials",
    403: "it refused the credentials",
    404: "it knows no such model or address",
    408: "it gave up waiting for the request",
    413: "the request is too long for it",
    429: "it has too many requests",
}
_LONGEST_PAUSE_S = 3600.0


class Failure(Exception):
    """An attempt failed; `transient` tells whether the same request may work in a moment.

    `status` is that of HTTP where the server refused, `retry_after_s` when it says to come back; 0 otherwise.
    """

    def __init__(self, reason: str, *, transient: bool, status: int = 0, retry_after_s: float = 0.0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.transient = transient
        self.status = status
        self.retry_after_s = retry_after_s


def refusal(status: int, headers: Mapping[str, str]) -> Failure:
    """Returns what a status other than 200 means."""
    moved = 300 <= status < 400
    known = _REASONS.get(status, "it sends requests elsewhere" if moved else "it refused the request")
    return Failure(
        f"{known} (status {status})",
        transient=status >= 500 or status in _TRANSIENT_STATUSES,
        status=status,
        retry_after_s=retry_after_s(headers, time.time()),
    )


def retry_after_s(headers: Mapping[str, str], now_s: float) -> float:
    """Returns the seconds that a server asks to wait, an hour at most; 0 when it does not say.

    It may say so in milliseconds (OpenAI's own header), in seconds, or as a date (RFC 9110, section 10.2.3). A date is
    read on the server's own clock where it tells the time.
    """
    if (milliseconds := _number(headers.get("retry-after-ms", ""))) is not None:
        return _bounded(milliseconds / 1e3)
    said = headers.get("retry-after", "")
    if (seconds := _number(said)) is not None:
        return _bounded(seconds)
    until_s = _date_s(said)
    return 0.0 if until_s is None else _bounded(until_s - (_date_s(headers.get("date", "")) or now_s))


def _bounded(seconds: float) -> float:
    return min(max(0.0, seconds), _LONGEST_PAUSE_S)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _date_s(text: str) -> float | None:
    try:
        date = parsedate_to_datetime(text)
    except ValueError:
        return None
    # A date that names no zone is in UTC, as all dates of HTTP are.
    return (date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp()
