"""What a page links to, and what it asks of those who read it by machine."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import urljoin

from selectolax.lexbor import LexborHTMLParser

from indexers.errors import ParseFailed
from indexers.parsing.charsets import decode
from indexers.parsing.html_tree import check_html
from indexers.sources.site_urls import canonical
from indexers.sources.sitemaps import sitemap_entries

_MOST = 5_000  # links of one page


@dataclass(frozen=True, slots=True)
class Links:
    """The links of a page, each once, in order; and whether it may be indexed."""

    urls: tuple[str, ...] = ()
    indexed: bool = True
    faulty: tuple[str, ...] = ()  # that a sitemap lists and that are no addresses


def page_links(content: bytes, url: str) -> Links:
    """Reads a page's links. A page that would take the parser too long has none, and is left to its own parser."""
    source, _ = decode(content)
    try:
        check_html(source, url)
    except ParseFailed:
        return Links()
    tree = LexborHTMLParser(source)
    asked = {
        word.strip().lower()
        for node in tree.css('meta[name="robots" i]')
        for word in (node.attributes.get("content") or "").split(",")
    }
    base_node = tree.css_first("base[href]")
    base = urljoin(url, base_node.attributes.get("href") or "") if base_node is not None else url
    indexed = not asked & {"noindex", "none"}
    own = tree.css_first('link[rel="canonical" i][href]')
    if own is not None and (said := _link(base, own.attributes.get("href"))) and said != url:
        return Links((said,), indexed=False)  # another address is the page's own; it is read there
    if asked & {"nofollow", "none"}:
        return Links((), indexed)
    found: dict[str, None] = {}
    for node in tree.css("a[href]"):
        if "nofollow" not in (node.attributes.get("rel") or "").lower() and len(found) < _MOST:
            link = _link(base, node.attributes.get("href"))
            if link:
                found.setdefault(link)
    return Links(tuple(found), indexed)


def sitemap_links(content: bytes, url: str) -> Links:
    """Reads what a sitemap lists.

    Raises:
        ItemUnreadable: see `sitemap_entries`.
    """
    urls: dict[str, None] = {}
    faulty: list[str] = []
    for entry in sitemap_entries(content, url):
        try:
            urls.setdefault(canonical(entry))
        except ValueError:
            faulty.append(entry)
    return Links(tuple(urls), faulty=tuple(faulty))


def _link(base: str, href: str | None) -> str:
    """Returns an address in its one spelling; empty for what is none."""
    try:
        joined = urljoin(base, (href or "").strip())
        return canonical(joined) if joined.startswith(("http://", "https://")) else ""
    except ValueError:
        return ""
