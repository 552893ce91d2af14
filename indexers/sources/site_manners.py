"""How often a host is asked, and what its robots.txt asks in return, which protego (BSD, Scrapy's reader) reads."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from indexers.errors import ItemUnreadable, JobError, SourceUnavailable
from indexers.sources.fetching import Fetcher
from indexers.sources.snapshots import temporary
from indexers.sources.spec import SiteSource as SiteSpec

_MAX_ROBOTS_BYTES = 512 * 1024  # RFC 9309
_LONGEST_DELAY_S = 60.0


class Manners:
    """The rules of all hosts that one source asks; one thread crawls."""

    def __init__(
        self, spec: SiteSpec, fetcher: Fetcher, scratch: Path, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._spec = spec
        self._fetcher = fetcher
        self._scratch = scratch
        self._sleep = sleep
        self._robots: dict[str, Any] = {}
        self._next: dict[str, float] = {}

    def allows(self, url: str) -> bool:
        """Tells whether the host's robots.txt lets the page be read.

        Raises:
            SourceUnavailable: the host cannot say now (RFC 9309: nothing may be read then).
        """
        return not self._spec.obey_robots or bool(self._rules(url).can_fetch(url, self._spec.user_agent))

    @contextmanager
    def turn(self, url: str) -> Iterator[None]:
        """Waits until the host may be asked again; the next request waits from the end of this one."""
        host = urlsplit(url).netloc
        wait_s = self._next.get(host, 0.0) - time.monotonic()
        if wait_s > 0:
            self._sleep(wait_s)
        try:
            yield
        finally:
            self._next[host] = time.monotonic() + self._delay_s(url)

    def _delay_s(self, url: str) -> float:
        asked = self._robots.get(_root(url))
        delay = asked.crawl_delay(self._spec.user_agent) if asked is not None and self._spec.obey_robots else None
        return min(max(1.0 / self._spec.requests_per_second, float(delay or 0.0)), _LONGEST_DELAY_S)

    def _rules(self, url: str) -> Any:
        root = _root(url)
        if root not in self._robots:
            self._robots[root] = self._read(root)
        return self._robots[root]

    def _read(self, root: str) -> Any:
        try:
            from protego import Protego  # noqa: PLC0415 - of the extra `sites`
        except ImportError as error:
            raise JobError("a source of kind `site` needs the extra `sites`: pip install 'headrace[sites]'") from error
        with temporary("robots.txt", self._scratch) as path:
            try:
                found = self._fetcher.fetch(f"{root}/robots.txt", path, _MAX_ROBOTS_BYTES)
            except ItemUnreadable as error:
                if error.kind == "forbidden_address":
                    raise
                return Protego.parse("")
            if found.status >= 500:
                raise SourceUnavailable(root, f"robots.txt answers {found.status}")
            text = path.read_bytes().decode("utf-8", "replace") if found.status == 200 else ""
        return Protego.parse(text)


def _root(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
