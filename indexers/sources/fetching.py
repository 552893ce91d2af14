"""Fetches one address into a file: bounded in size and in time as a whole, every redirect checked anew."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from pathlib import Path

import httpcore
import httpx

from indexers.errors import ItemUnreadable, SourceUnavailable
from indexers.sources.addresses import AddressGuard, guarded_client
from indexers.sources.bounded_stream import ending_by

MAX_REDIRECTS = 5
_LONGEST_WAIT_S = 3_600.0
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Fetched:
    """What a server answered; the body is in the file that was named, for status 200."""

    status: int
    url: str  # where the answer came from, after redirects
    headers: Mapping[str, str]  # names in lower case


class Fetcher:
    """A client of one job. Threads may share it."""

    def __init__(self, guard: AddressGuard, timeout_s: float, user_agent: str) -> None:
        self._guard = guard
        self._timeout_s = timeout_s
        self._agent = user_agent
        self._client = guarded_client(guard, timeout_s)

    def fetch(self, url: str, into: Path, limit_bytes: int, headers: Mapping[str, str] | None = None) -> Fetched:
        """Fetches an address; `headers` go to its own host alone, not to where it redirects to.

        Raises:
            ItemUnreadable: it may not be fetched, is too large, or redirects too often.
            SourceUnavailable: it cannot be fetched now.
        """
        until = time.monotonic() + self._timeout_s
        own = dict(headers or {})
        origin = _origin(self._guard.check(url))
        with ending_by(until):
            for _ in range(MAX_REDIRECTS + 1):
                parts = self._guard.check(url)
                sent = own if _origin(parts) == origin else {}
                found = self._once(url, into, limit_bytes, {**sent, "user-agent": self._agent}, until)
                if found.status not in _REDIRECTS or "location" not in found.headers:
                    return found
                url = str(parts.join(found.headers["location"]).copy_with(fragment=None))
        raise ItemUnreadable(url[:200], f"redirects more than {MAX_REDIRECTS} times", "redirects")

    def close(self) -> None:
        """Closes the connections."""
        self._client.close()

    def _once(self, url: str, into: Path, limit_bytes: int, headers: Mapping[str, str], until: float) -> Fetched:
        left = max(0.05, until - time.monotonic())
        try:
            with self._client.stream("GET", url, headers=dict(headers), timeout=left) as reply:
                named = {name.lower(): value for name, value in reply.headers.items()}
                if reply.status_code == httpx.codes.OK:
                    _write(reply, into, limit_bytes)
                elif reply.status_code in _PASSING:
                    wait_s = _retry_after_s(named.get("retry-after", ""))
                    raise SourceUnavailable(_shown(url), f"answers {reply.status_code}", wait_s)
                return Fetched(reply.status_code, url, named)
        except (httpx.HTTPError, httpx.StreamError, httpcore.ConnectError, httpcore.NetworkError) as error:
            raise SourceUnavailable(_shown(url), f"cannot be fetched: {type(error).__name__}") from error
        except (httpcore.TimeoutException, httpcore.ProtocolError) as error:
            raise SourceUnavailable(_shown(url), f"cannot be fetched: {type(error).__name__}") from error


def _write(reply: httpx.Response, into: Path, limit_bytes: int) -> None:
    """Writes the body, unpacked, while it is within its bounds: a bomb is counted as what it unpacks to."""
    size = 0
    with into.open("wb") as opened:
        for block in reply.iter_bytes(64 * 1024):
            size += len(block)
            if size > limit_bytes:
                raise ItemUnreadable(_shown(str(reply.url)), f"is larger than {limit_bytes} bytes", "too_large")
            opened.write(block)


def _origin(url: httpx.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _shown(url: str) -> str:
    """Returns an address without its query, which may hold a secret."""
    return url.partition("?")[0][:300]


def _retry_after_s(value: str) -> float:
    """Reads seconds or a date; 0 for neither."""
    if value.strip().isdigit():
        return min(float(value), _LONGEST_WAIT_S)
    try:
        moment = parsedate_to_datetime(value)
    except (TypeError, ValueError):
        return 0.0
    return min(
        max(0.0, (moment.replace(tzinfo=moment.tzinfo or UTC) - datetime.now(UTC)).total_seconds()), _LONGEST_WAIT_S
    )
