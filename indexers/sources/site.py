"""Pages of web sites: those of sitemaps and those that links lead to, politely, breadth first, in a stable order.

A scan fetches: links are found in no other way. What a page said last time stays in the job's folder with its ETag, so
an unchanged page costs an answer without a body, and its fingerprint, a hash of the content, stays the same. Pages that
answer 404 or 410 are not listed, so their documents go; others that cannot be fetched are failures, which keep theirs.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from indexers.errors import ItemGone, ItemUnreadable, SourceUnavailable
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import ParseFailure, SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.addresses import AddressGuard
from indexers.sources.fetching import Fetcher
from indexers.sources.site_links import Links, page_links
from indexers.sources.site_manners import Manners
from indexers.sources.site_pages import SitePages, StoredPage
from indexers.sources.site_urls import Wanted, canonical, item_name
from indexers.sources.sitemaps import is_sitemap, sitemap_entries
from indexers.sources.snapshots import temporary
from indexers.sources.source import ItemRef, Scanned
from indexers.sources.spec import SiteSource as SiteSpec

_SUFFIXES = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "application/pdf": ".pdf",
    "text/plain": ".txt",
    "text/markdown": ".md",
}
_GONE = frozenset({404, 410})
_NOT_MODIFIED = 304


class SiteSource:
    """The pages of one or several sites."""

    def __init__(self, spec: SiteSpec, access: SourceAccess, scratch: Path) -> None:
        """Checks the start addresses; nothing is fetched yet.

        Raises:
            ItemUnreadable: an address may not be fetched, or a secret is not there.
        """
        guard = AddressGuard(access.private(asked=spec.allow_private))
        self._spec = spec
        self._scratch = scratch
        self._start = [canonical(str(guard.check(url))) for url in spec.start]
        self._headers = {name: access.secret(reference) for name, reference in spec.header_refs.items()}
        self._wanted = Wanted(spec, self._start)
        self._pages = SitePages(scratch / "pages")
        self._fetcher = Fetcher(guard, spec.timeout_s, spec.user_agent)
        self._manners = Manners(spec, self._fetcher, scratch)
        self._complete = True

    @property
    def complete(self) -> bool:
        """Whether the last scan came by everything: False when `max_pages` has cut it off."""
        return self._complete

    def scan(self) -> Iterator[Scanned]:
        """Yields the pages, nearest to the start first.

        Raises:
            SourceUnavailable: a start address, or its robots.txt, cannot be reached.
            ItemUnreadable: a start address may not be fetched.
        """
        self._complete = True
        seen = set(self._start)
        waiting = deque((url, 0) for url in self._start)
        given = 0
        while waiting:
            url, depth = waiting.popleft()
            found = self._tried(url)
            if not isinstance(found, tuple):
                yield found
                continue
            item, links = found
            if item is not None and links.indexed:
                if given == self._spec.max_pages:
                    self._complete = False
                    return
                given += 1
                yield item
            deeper = depth + (0 if is_sitemap(url) else 1)
            for link in links.urls if deeper <= self._spec.max_depth else ():
                if link not in seen and self._wanted.follows(link):
                    seen.add(link)
                    waiting.append((link, deeper))

    @contextmanager
    def open(self, ref: ItemRef) -> Iterator[SourceFile]:
        """Gives the page as the scan fetched it.

        Raises:
            ItemGone: no scan here has fetched it.
        """
        page = self._pages.find(ref.uri)
        if page is None:
            raise ItemGone(ref.name, "was not fetched by this machine")
        with temporary(ref.name, self._scratch) as path:  # parsers go by the suffix
            shutil.copyfile(page.body, path)
            yield SourceFile(path, ref.name, ref.uri)

    def commit(self) -> None:
        """Does nothing: a scan fetches only what has changed."""

    def close(self) -> None:
        """Closes the connections."""
        self._fetcher.close()

    def _tried(self, url: str) -> tuple[ItemRef | None, Links] | SkippedFile | ParseFailure:
        """Visits a page; what is wrong with one that is not a start address is a failure of its own."""
        try:
            return self._visit(url)
        except SourceUnavailable as error:
            if url in self._start:
                raise
            return ParseFailure(url, url, error.reason, "unavailable")
        except ItemUnreadable as error:
            if error.kind == "forbidden_address" and url in self._start:
                raise
            return ParseFailure(url, url, error.reason, error.kind)

    def _visit(self, url: str) -> tuple[ItemRef | None, Links] | SkippedFile:
        """Fetches a page or a sitemap, and returns it with what it links to."""
        if not self._manners.allows(url):
            return SkippedFile(url, "robots.txt asks not to read it")
        page = self._fetched(url)
        if page is None:
            return None, Links()
        if is_sitemap(url):
            entries = sitemap_entries(page.body.read_bytes(), url)
            return None, Links(tuple(canonical(entry) for entry in entries))
        suffix = _SUFFIXES.get(page.content_type)
        if suffix is None:
            return SkippedFile(url, f"is {page.content_type or 'of no type'}, which is not read")
        if not self._wanted.reads(page.url):
            return SkippedFile(url, "leads out of the site")
        links = page_links(page.body.read_bytes(), page.url) if suffix == ".html" else Links()
        item = ItemRef(page.url, item_name(page.url, suffix), page.fingerprint, page.body.stat().st_size)
        return item, links

    def _fetched(self, url: str) -> StoredPage | None:
        """Fetches a page unless it is as it was; None when it is gone."""
        before = self._pages.find(url)
        headers = dict(self._headers) if self._wanted.is_own(url) else {}
        if before is not None:
            headers |= before.conditions
        with self._manners.turn(url), self._pages.incoming() as body:
            reply = self._fetcher.fetch(url, body, self._pages.max_bytes, headers)
            if reply.status == _NOT_MODIFIED and before is not None:
                return before
            if reply.status in _GONE:
                self._pages.forget(url)
                return None
            if reply.status != 200:
                raise ItemUnreadable(url, f"answers {reply.status}", "forbidden")
            return self._pages.keep(url, canonical(reply.url), reply.headers, body)
