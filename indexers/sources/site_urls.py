"""Addresses of pages: one spelling each, which of them are read, and what their items are called."""

from __future__ import annotations

import fnmatch
import hashlib
import re
from collections.abc import Sequence
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from indexers.sources.sitemaps import is_sitemap
from indexers.sources.spec import SiteSource as SiteSpec

_PORTS = {"http": 80, "https": 443}
_LONGEST = 2_000
_MOST_REPEATED = 3  # of one path segment; more is a trap that links into itself
_LONGEST_NAME = 400
_UNSAFE = re.compile(r"[^\w.~/+-]")
_DOTS = re.compile(r"(?<=/)\.{1,2}(?=/|$)")  # segments that lead elsewhere
_SLASH = re.compile("%2F", re.IGNORECASE)  # one that is part of a segment


def canonical(url: str) -> str:
    """Returns one spelling of an address: lower-case host, no default port, no fragment, a path.

    Raises:
        ValueError: it has a port or a host that cannot be one.
    """
    parts = urlsplit(url)
    host = (parts.hostname or "").lower()
    host = f"[{host}]" if ":" in host else host
    port = "" if parts.port in (None, _PORTS.get(parts.scheme)) else f":{parts.port}"
    path = "%2F".join(_quoted(unquote(piece)) for piece in _SLASH.split(parts.path or "/"))
    return urlunsplit((parts.scheme.lower(), f"{host}{port}", path, parts.query, ""))


def item_name(url: str, suffix: str, scheme: str) -> str:
    """Returns a relative name with a suffix that says how the page is parsed; different for different addresses.

    It is the path where that ends in the suffix, with `index` where it ends in a slash. Where the name tells less than
    the address (no suffix, another scheme than the site's, a query, odd characters, too long), a hash of that follows.
    """
    parts = urlsplit(url)
    index = f"index{suffix}"
    path = parts.path + index if parts.path.endswith("/") else parts.path
    stem = unquote(path).removesuffix(suffix)
    safe = _DOTS.sub("_", _UNSAFE.sub("_", stem))[: _LONGEST_NAME + 1]
    told = safe == stem and f"{_quoted(stem)}{suffix}" == path and not parts.path.endswith(f"/{index}")
    if not told or parts.query or parts.scheme != scheme:
        safe += f"-{hashlib.blake2b(url.encode(), digest_size=6).hexdigest()}"
    port = f"+{parts.port}" if parts.port else ""
    return f"{parts.hostname}{port}{safe}{suffix}"


def _quoted(path: str) -> str:
    return quote(path, safe="/~:@!$&'()*+,;=-._")


class Wanted:
    """Which addresses are followed and read."""

    def __init__(self, spec: SiteSpec, start: Sequence[str]) -> None:
        self._include = [_pattern(glob) for glob in spec.include]
        self._exclude = [_pattern(glob) for glob in spec.exclude]
        self._below = [url.rpartition("/")[0] + "/" for url in start if not is_sitemap(url)]
        self._hosts = {urlsplit(url).netloc for url in start}

    def is_own(self, url: str) -> bool:
        """Tells whether an address is of a start address' host."""
        return urlsplit(url).netloc in self._hosts

    def follows(self, url: str) -> bool:
        """Tells whether a link is followed."""
        if len(url) > _LONGEST or urlsplit(url).scheme not in _PORTS or _is_trap(url):
            return False
        return (is_sitemap(url) and self.is_own(url)) or self.reads(url)

    def reads(self, url: str) -> bool:
        """Tells whether a page is read."""
        if any(pattern.fullmatch(url) for pattern in self._exclude):
            return False
        if self._include:
            return any(pattern.fullmatch(url) for pattern in self._include)
        if self._below:
            return any(url.startswith(below) for below in self._below)
        return self.is_own(url)


def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(fnmatch.translate(glob))


def _is_trap(url: str) -> bool:
    segments = [segment for segment in urlsplit(url).path.split("/") if segment]
    return any(segments.count(segment) > _MOST_REPEATED for segment in set(segments))
