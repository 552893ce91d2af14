"""A web site as a source: polite, bounded, and never led to addresses that are not for jobs."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from indexers.errors import ItemUnreadable, SourceUnavailable
from indexers.parsing.parsed import ParseFailure, SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.addresses import AddressGuard, is_public
from indexers.sources.fetching import Fetcher
from indexers.sources.site import SiteSource
from indexers.sources.source import ItemRef
from indexers.sources.spec import SiteSource as SiteSpec
from tests.fakes.site_server import Page, SiteServer, serving

XML = {"content-type": "application/xml"}


@pytest.fixture
def site() -> Iterator[SiteServer]:
    """Is a site with a start page."""
    with serving(
        SiteServer({"/": Page(b"<a href='/a'>a</a> <a href='b/'>b</a> <a href='http://else.example/'>x</a>")})
    ) as up:
        yield up


def crawl(site: SiteServer, folder: Path, *, access: SourceAccess | None = None, **changed: object):
    """Scans the site and returns source, items by name, failures and skips."""
    spec = {"kind": "site", "start": [f"{site.url}/"], "allow_private": True, "requests_per_second": 1000.0, **changed}
    source = SiteSource(SiteSpec.model_validate(spec), access or SourceAccess(), folder)
    found = list(source.scan())
    items = {one.uri.removeprefix(site.url): one for one in found if isinstance(one, ItemRef)}
    return source, items, [one for one in found if isinstance(one, ParseFailure | SkippedFile)]


def test_links_are_followed_within_the_site(site: SiteServer, tmp_path: Path) -> None:
    """Pages below the start are read, each once, and nothing of another host is asked for."""
    site.pages |= {"/a": Page(b"<p>a <a href='/#top'>up</a>"), "/b/": Page(b"<p>b <a href='../a'>a</a>")}
    _, items, left = crawl(site, tmp_path)
    assert list(items) == ["/", "/a", "/b/"]
    assert left == []
    assert site.paths().count("/a") == 1
    assert len({one.name for one in items.values()}) == 3


def test_unchanged_page_costs_no_body(site: SiteServer, tmp_path: Path) -> None:
    """A page with an ETag is asked for under a condition, and keeps its fingerprint."""
    site.pages["/a"] = Page(b"<p>a", etag='"1"')
    _, first, _ = crawl(site, tmp_path)
    _, second, _ = crawl(site, tmp_path)
    assert first["/a"] == second["/a"]
    assert [headers.get("if-none-match") for path, headers in site.asked if path == "/a"] == [None, '"1"']


def test_robots_txt_is_obeyed(site: SiteServer, tmp_path: Path) -> None:
    """What the site asks not to be read is skipped with that reason, unless it is one's own."""
    site.pages |= {"/robots.txt": Page(b"User-agent: *\nDisallow: /a\n"), "/a": Page(b"<p>a")}
    _, items, left = crawl(site, tmp_path)
    assert "/a" not in items
    assert "robots.txt" in left[0].reason
    _, items, _ = crawl(site, tmp_path, obey_robots=False)
    assert "/a" in items


def test_robots_txt_that_fails_stops_the_crawl(site: SiteServer, tmp_path: Path) -> None:
    """While a site cannot say what may be read, nothing is, and nothing is taken for deleted."""
    site.pages["/robots.txt"] = Page(status=503)
    with pytest.raises(SourceUnavailable):
        crawl(site, tmp_path)


def test_sitemaps_are_read(site: SiteServer, tmp_path: Path) -> None:
    """An index of sitemaps, one of them packed, leads to its pages."""
    inner = f"<urlset><url><loc>{site.url}/a</loc></url></urlset>".encode()
    index = f"<sitemapindex><sitemap><loc>{site.url}/s.xml.gz</loc></sitemap></sitemapindex>".encode()
    site.pages = {
        "/map.xml": Page(index, headers=XML),
        "/s.xml.gz": Page(gzip.compress(inner), headers=XML),
        "/a": Page(b"<p>a"),
    }
    _, items, left = crawl(site, tmp_path, start=[f"{site.url}/map.xml"], max_depth=0)
    assert (list(items), left) == (["/a"], [])


def test_pages_say_what_is_done_with_them(site: SiteServer, tmp_path: Path) -> None:
    """noindex, nofollow and canonical are obeyed."""
    site.pages |= {
        "/a": Page(b"<meta name=robots content='noindex'><a href='/c'>c</a>"),
        "/b/": Page(b"<link rel=canonical href='/d'><p>copy"),
        "/c": Page(b"<meta name=robots content='nofollow'><a href='/e'>e</a>"),
        "/d": Page(b"<p>the one"),
        "/e": Page(b"<p>never"),
    }
    _, items, _ = crawl(site, tmp_path)
    assert sorted(items) == ["/", "/c", "/d"]


def test_page_that_fails_is_a_failure_of_its_own(site: SiteServer, tmp_path: Path) -> None:
    """A 500 keeps what was indexed of the page, a 404 does not, and other types are skipped."""
    site.pages |= {"/a": Page(status=500), "/b/": Page(b"\x89PNG", headers={"content-type": "image/png"})}
    _, items, left = crawl(site, tmp_path)
    assert list(items) == ["/"]
    assert {type(one) for one in left} == {ParseFailure, SkippedFile}


def test_crawl_that_is_cut_off_is_not_complete(site: SiteServer, tmp_path: Path) -> None:
    """With more pages than are allowed, nothing is known of the rest."""
    site.pages |= {"/a": Page(b"<p>a"), "/b/": Page(b"<p>b")}
    source, items, _ = crawl(site, tmp_path, max_pages=2)
    assert len(items) == 2
    assert not source.complete


def test_secret_headers_go_to_the_site_alone(site: SiteServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A token is sent to the hosts of the start addresses, and not to where they redirect to."""
    monkeypatch.setenv("SITE_TOKEN", "hush")
    with serving(SiteServer({"/x": Page(b"<p>x")})) as other:
        site.pages["/a"] = Page(status=302, headers={"location": f"{other.url}/x"})
        crawl(site, tmp_path, header_refs={"x-token": "env:SITE_TOKEN"})
        assert all(headers["x-token"] == "hush" for path, headers in site.asked if path != "/robots.txt")
        assert all("x-token" not in headers for _, headers in other.asked)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "::1",
        "::ffff:127.0.0.1",
        "fe80::1",
        "fc00::1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "::127.0.0.1",
    ],
)
def test_private_addresses_are_not_public(address: str) -> None:
    """Whatever form they come in."""
    import ipaddress

    assert not is_public(ipaddress.ip_address(address))
    with pytest.raises(ItemUnreadable):
        AddressGuard(False, lambda host, port: [address]).resolve("looks.example", 80)


@pytest.mark.parametrize(
    "url", ["file:///etc/passwd", "gopher://x/", "http://user:word@x.example/", "http:///x", "nothing"]
)
def test_address_that_is_no_page_is_refused(url: str) -> None:
    """Only http and https, and no credentials."""
    with pytest.raises(ItemUnreadable) as refused:
        AddressGuard(True).check(url)
    assert "word" not in str(refused.value)


def test_redirect_to_a_private_address_is_refused(site: SiteServer, tmp_path: Path) -> None:
    """Each redirect is checked anew: a public name does not lead into the network."""
    site.pages["/go"] = Page(status=302, headers={"location": "http://inner.example/"})
    names = {"outer.example": "93.184.216.34", "inner.example": "10.0.0.1"}
    resolved: list[str] = []

    class Guard(AddressGuard):
        def resolve(self, host: str, port: int) -> list[str]:
            found = super().resolve(host, port)
            resolved.append(host)
            return ["127.0.0.1"] if host == "outer.example" else found

    guard = Guard(False, lambda host, port: [names[host]])
    fetcher = Fetcher(guard, 5.0, "headrace")
    with pytest.raises(ItemUnreadable, match="private network"):
        fetcher.fetch(f"http://outer.example:{site.port}/go", tmp_path / "body", 1_000)
    fetcher.close()
    assert resolved == ["outer.example"]


def test_body_is_bounded_as_it_unpacks(site: SiteServer, tmp_path: Path) -> None:
    """A small packed body that unpacks to much is given up while it is read."""
    headers = {"content-type": "text/html", "content-encoding": "gzip"}
    site.pages["/bomb"] = Page(gzip.compress(b"x" * 5_000_000), headers=headers)
    fetcher = Fetcher(AddressGuard(True), 5.0, "headrace")
    with pytest.raises(ItemUnreadable) as refused:
        fetcher.fetch(f"{site.url}/bomb", tmp_path / "body", 1_000_000)
    fetcher.close()
    assert refused.value.kind == "too_large"
    assert (tmp_path / "body").stat().st_size <= 1_000_000
