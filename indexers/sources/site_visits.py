"""Visits one page of a site after the other: fetches it if it has changed, and says what it is and where it leads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from indexers.errors import ItemUnreadable, SourceUnavailable
from indexers.parsing.parsed import ParseFailure, SkippedFile
from indexers.sources.fetching import Fetcher
from indexers.sources.site_links import Links, page_links, sitemap_links
from indexers.sources.site_manners import Manners
from indexers.sources.site_pages import SitePages, StoredPage
from indexers.sources.site_urls import Wanted, canonical, item_name
from indexers.sources.sitemaps import is_sitemap
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
_ELSEWHERE = "elsewhere"


class Visits:
    """The visits of one scan."""

    def __init__(
        self, spec: SiteSpec, start: Sequence[str], headers: Mapping[str, str], fetcher: Fetcher, scratch: Path
    ) -> None:
        """`headers` go to the hosts of the start addresses alone."""
        self.wanted = Wanted(spec, start)
        self.complete = True  # False once nothing is known of where a page leads
        self.gone: list[str] = []  # names of pages that were there, and that the server says are gone
        self._start = start
        self._scheme = start[0].partition(":")[0]
        self._headers = headers
        self._fetcher = fetcher
        self._manners = Manners(spec, fetcher, scratch)
        self._pages = SitePages(scratch / "pages")

    def visit(self, url: str) -> tuple[Scanned | None, Links]:
        """Returns what a page is, if it is to be listed, and where it leads.

        Raises:
            SourceUnavailable, ItemUnreadable: a start address cannot be had, or is nothing that is read; what is wrong
                with another page is a failure of its own.
        """
        try:
            found, links = self._visited(url)
        except (SourceUnavailable, ItemUnreadable) as error:
            if url in self._start:
                raise
            if isinstance(error, ItemUnreadable) and error.kind == _ELSEWHERE and self._pages.find(url) is None:
                return SkippedFile(url, error.reason), Links()
            return self._failed(url, error)
        if url in self._start and isinstance(found, SkippedFile):
            raise ItemUnreadable(url, found.reason, "forbidden")
        return found, links

    def _failed(self, url: str, error: SourceUnavailable | ItemUnreadable) -> tuple[ParseFailure, Links]:
        """Returns the failure, with the links that the page had when it was read last."""
        kind = error.kind if isinstance(error, ItemUnreadable) else "unavailable"
        before = self._pages.find(url)
        uri = url if before is None else before.url
        try:
            links = None if before is None else self._links(before, url)
        except ItemUnreadable:
            links = None
        if links is None:
            self.complete = False
        return ParseFailure(url, uri, error.reason, kind), links or Links()

    def _visited(self, url: str) -> tuple[ItemRef | SkippedFile | None, Links]:
        """Fetches a page or a sitemap, and returns it with what it links to."""
        if not self._manners.allows(url):
            return SkippedFile(url, "robots.txt asks not to read it"), Links()
        page = self._fetched(url)
        if page is None:
            return None, Links()
        if is_sitemap(url):
            return None, self._links(page, url)
        suffix = _SUFFIXES.get(page.content_type)
        if suffix is None:
            return SkippedFile(url, f"is {page.content_type or 'of no type'}, which is not read"), Links()
        links = self._links(page, url)
        item = ItemRef(page.url, self._name(page.url, suffix), page.fingerprint, page.body.stat().st_size)
        return (item if links.indexed else None), links

    def _links(self, page: StoredPage, url: str) -> Links:
        if is_sitemap(url):
            return sitemap_links(page.body.read_bytes(), url)
        is_html = _SUFFIXES.get(page.content_type) == ".html"
        return page_links(page.body.read_bytes(), page.url) if is_html else Links()

    def _name(self, url: str, suffix: str) -> str:
        return item_name(url, suffix, self._scheme)

    def _fetched(self, url: str) -> StoredPage | None:
        """Fetches a page unless it is as it was; None when it is gone."""
        before = self._pages.find(url)
        headers = dict(self._headers) if self.wanted.is_own(url) else {}
        if before is not None:
            headers |= before.conditions
        with self._manners.turn(url), self._pages.incoming() as body:
            reply = self._fetcher.fetch(url, body, self._pages.max_bytes, headers)
            if reply.status == _NOT_MODIFIED and before is not None:
                return before
            if reply.status in _GONE:
                self._forget(url, reply.status, before)
                return None
            if reply.status != 200:
                raise ItemUnreadable(url, f"answers {reply.status}", "forbidden")
            came_from = canonical(reply.url)
            if not is_sitemap(url) and not self.wanted.reads(came_from):
                raise ItemUnreadable(url, "leads out of the site", _ELSEWHERE)  # as to a login; it is not kept
            return self._pages.keep(url, came_from, reply.headers, body)

    def _forget(self, url: str, status: int, before: StoredPage | None) -> None:
        """Forgets a page that is gone, and takes note of the document that it was."""
        if url in self._start:
            raise SourceUnavailable(url, f"answers {status}; take it out of source.start if it is gone")
        if before is not None and before.url == url and (suffix := _SUFFIXES.get(before.content_type)):
            self.gone.append(self._name(url, suffix))
        self._pages.forget(url)
