"""Pages of web sites: those of sitemaps and those that links lead to, politely, breadth first, in a stable order.

A scan fetches: links are found in no other way. What a page said last time stays in the job's folder with its ETag, so
an unchanged page costs an answer without a body, and its fingerprint, a hash of the content, stays the same. Pages that
answer 404 or 410 are not listed, so their documents go; others that cannot be fetched are failures, which keep theirs,
and lead where they led last time. Where nothing is known of that, only what is proven to be gone goes.
"""

from __future__ import annotations

import shutil
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from indexers.errors import ItemGone
from indexers.parsing.options import SourceFile
from indexers.parsing.parsed import SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.addresses import AddressGuard
from indexers.sources.fetching import Fetcher
from indexers.sources.site_pages import SitePages
from indexers.sources.site_urls import canonical
from indexers.sources.site_visits import Visits
from indexers.sources.sitemaps import is_sitemap
from indexers.sources.snapshots import temporary
from indexers.sources.source import ItemRef, Scanned
from indexers.sources.spec import SiteSource as SiteSpec


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
        self._fetcher = Fetcher(guard, spec.timeout_s, spec.user_agent)
        self._visits = self._begun()
        self._cut_off = False

    @property
    def complete(self) -> bool:
        """Whether the last scan came by everything: False when it was cut off, or could not see where a page leads."""
        return self._visits.complete and not self._cut_off

    def deleted_ids(self) -> Sequence[str]:
        """Returns the names of pages that were there before, and that the server says are gone."""
        return tuple(self._visits.gone)

    def scan(self) -> Iterator[Scanned]:
        """Yields the pages, nearest to the start first, each once.

        Raises:
            SourceUnavailable: a start address, or its robots.txt, cannot be had.
            ItemUnreadable: a start address may not be read, or is nothing that is read.
        """
        self._visits, self._cut_off = self._begun(), False
        seen, given = set(self._start), set[str]()
        waiting = deque((url, 0) for url in self._start)
        while waiting:
            url, depth = waiting.popleft()
            if url in given:  # a page that was read has led here
                continue
            found, links = self._visits.visit(url)
            if isinstance(found, ItemRef):
                if found.uri in given:
                    continue
                if len(given) == self._spec.max_pages:
                    self._cut_off = True
                    return
                given.add(found.uri)
            if found is not None:
                yield found
            for faulty in links.faulty:
                yield SkippedFile(faulty[:200], "is no address of a page")
            deeper = depth + (0 if is_sitemap(url) else 1)
            for link in links.urls if deeper <= self._spec.max_depth else ():
                if link not in seen and self._visits.wanted.follows(link):
                    seen.add(link)
                    waiting.append((link, deeper))

    @contextmanager
    def open(self, ref: ItemRef) -> Iterator[SourceFile]:
        """Gives the page as the scan fetched it.

        Raises:
            ItemGone: no scan here has fetched it.
        """
        page = SitePages(self._scratch / "pages").find(ref.uri)
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

    def _begun(self) -> Visits:
        return Visits(self._spec, self._start, self._headers, self._fetcher, self._scratch)
