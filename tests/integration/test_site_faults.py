"""What goes wrong while a site is read costs no document that is still there."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from indexers.errors import ItemUnreadable, SourceUnavailable
from indexers.jobs.state import DocumentState, Run, RunState
from indexers.parsing.parsed import ParseFailure, SkippedFile
from indexers.sources.access import SourceAccess
from indexers.sources.addresses import AddressGuard
from indexers.sources.fetching import Fetcher
from indexers.sources.site import SiteSource
from indexers.sources.source import ItemRef, Scanned
from indexers.sources.spec import SiteSource as SiteSpec
from tests.fakes.job_rigs import Rig, rig_of, spec_of
from tests.fakes.site_server import Page, SiteServer, serving

XML = {"content-type": "application/xml"}


def page(words: str, *links: str) -> Page:
    """Returns a page with words and links."""
    anchors = "".join(f"<a href='{link}'>{link}</a> " for link in links)
    return Page(f"<html><body><main><p>{words}</p>{anchors}</main></body></html>".encode())


@pytest.fixture
def site() -> Iterator[SiteServer]:
    """Is a site in which one page leads to the next."""
    pages = {
        "/": page("the start of it all", "/a.html"),
        "/a.html": page("about pumps", "/b.html"),
        "/b.html": page("about valves"),
    }
    with serving(SiteServer(pages)) as up:
        yield up


def source_of(site: SiteServer, folder: Path, **changed: object) -> SiteSource:
    """Returns the site as a source."""
    spec = {"kind": "site", "start": [f"{site.url}/"], "allow_private": True, "requests_per_second": 1000.0, **changed}
    return SiteSource(SiteSpec.model_validate(spec), SourceAccess(), folder)


def read(source: SiteSource) -> tuple[list[str], list[Scanned]]:
    """Scans a source; returns the names of items without their host, and everything else."""
    found = list(source.scan())
    items = [one.name.partition("/")[2] for one in found if isinstance(one, ItemRef)]
    return items, [one for one in found if not isinstance(one, ItemRef)]


@pytest.fixture
async def rig(tmp_path: Path) -> AsyncIterator[Rig]:
    """Is a job over an empty collection, which may delete as much as it likes."""
    limits = {"backoff_s": 0.0, "attempts": 1, "shrink_share": 1.0}
    async with rig_of(tmp_path, spec_of(limits=limits)) as opened:
        yield opened


async def run(rig: Rig, site: SiteServer, folder: Path, **changed: object) -> Run:
    """Runs the job over the site."""
    rig.source = source_of(site, folder / "site", **changed)  # type: ignore[assignment]
    return await rig.run()


async def stored(rig: Rig) -> list[str]:
    """Returns the names of the documents without their host."""
    return sorted(name.partition("/")[2] for name in await rig.stored())


@pytest.mark.parametrize("status", [500, 403, 404, 410])
async def test_start_page_that_cannot_be_read_deletes_nothing(
    rig: Rig, site: SiteServer, tmp_path: Path, status: int
) -> None:
    """A site whose start is missing is not an empty site: the run fails, and says which address answers what."""
    assert (await run(rig, site, tmp_path)).state is RunState.SUCCEEDED
    site.pages["/"] = Page(status=status)
    failed = await run(rig, site, tmp_path)
    assert failed.state is RunState.FAILED
    assert f"answers {status}" in failed.reason
    assert await stored(rig) == ["a.html", "b.html", "index.html"]


def test_start_page_that_robots_forbid_or_that_is_no_page_fails(site: SiteServer, tmp_path: Path) -> None:
    """What would be left out elsewhere is an error where reading begins."""
    site.pages["/robots.txt"] = Page(b"User-agent: *\nDisallow: /\n")
    with pytest.raises(ItemUnreadable, match=r"robots\.txt"):
        read(source_of(site, tmp_path))
    del site.pages["/robots.txt"]
    site.pages["/"] = Page(b"\x89PNG", headers={"content-type": "image/png"})
    with pytest.raises(ItemUnreadable, match="image/png"):
        read(source_of(site, tmp_path))
    site.pages["/map.xml"] = Page(b"<html>we are moving", headers=XML)
    with pytest.raises(ItemUnreadable, match="no sitemap"):
        read(source_of(site, tmp_path, start=[f"{site.url}/map.xml"]))


FAILING = [Page(status=500), Page(status=403), Page(status=302, headers={"location": "/a.html"})]


@pytest.mark.parametrize("failing", FAILING)
async def test_pages_behind_a_page_that_fails_stay(rig: Rig, site: SiteServer, tmp_path: Path, failing: Page) -> None:
    """Where a page led last time, it leads while it cannot be read: what is changed there is found, nothing goes."""
    await run(rig, site, tmp_path)
    site.pages |= {"/a.html": failing, "/b.html": page("about new valves")}
    again = await run(rig, site, tmp_path)
    assert again.state is RunState.PARTIAL
    assert again.documents[DocumentState.VERIFIED] == 1
    assert await stored(rig) == ["a.html", "b.html", "index.html"]
    assert DocumentState.DELETED not in again.documents


async def test_page_that_leads_to_a_login_stays_with_all_behind_it(rig: Rig, site: SiteServer, tmp_path: Path) -> None:
    """Only what was never a page of the site is passed over; its last copy outlives every such answer."""
    with serving(SiteServer({"/": page("please log in")})) as login:
        elsewhere = Page(status=302, headers={"location": f"{login.url}/"})
        site.pages["/"] = page("the start", "/a.html", "/out.html")
        site.pages["/out.html"] = elsewhere
        assert (await run(rig, site, tmp_path)).state is RunState.SUCCEEDED
        site.pages["/a.html"] = elsewhere
        for _ in range(2):
            again = await run(rig, site, tmp_path)
            assert again.state is RunState.PARTIAL
            assert await stored(rig) == ["a.html", "b.html", "index.html"]


@pytest.mark.parametrize("failing", FAILING)
async def test_nothing_is_deleted_when_it_is_not_known_where_a_page_leads(
    rig: Rig, site: SiteServer, tmp_path: Path, failing: Page
) -> None:
    """On another machine no earlier copy is there; a page that the server says is gone goes all the same."""
    site.pages["/"] = page("the start", "/a.html", "/c.html")
    site.pages["/c.html"] = page("about bearings")
    await run(rig, site, tmp_path / "one")
    site.pages["/a.html"] = failing
    again = await run(rig, site, tmp_path / "other")
    assert again.state is RunState.PARTIAL
    assert await stored(rig) == ["a.html", "b.html", "c.html", "index.html"]
    del site.pages["/c.html"]
    await run(rig, site, tmp_path / "other")
    assert await stored(rig) == ["a.html", "b.html", "index.html"]


async def test_page_that_is_gone_or_that_nothing_links_to_goes(rig: Rig, site: SiteServer, tmp_path: Path) -> None:
    """A whole scan deletes both, once every page was read or is known to be gone."""
    await run(rig, site, tmp_path)
    site.pages["/a.html"] = page("about pumps")  # the link to /b.html is gone
    await run(rig, site, tmp_path)
    assert await stored(rig) == ["a.html", "index.html"]
    del site.pages["/a.html"]
    await run(rig, site, tmp_path)
    assert await stored(rig) == ["index.html"]


async def test_redirected_page_that_fails_keeps_its_document(rig: Rig, site: SiteServer, tmp_path: Path) -> None:
    """A document belongs to the address that a redirect led to; a failure of the first address is a failure of it."""
    site.pages["/a.html"] = Page(status=302, headers={"location": "/moved.html"})
    site.pages["/moved.html"] = page("about moved pumps")
    await run(rig, site, tmp_path)
    assert await stored(rig) == ["index.html", "moved.html"]
    site.pages["/a.html"] = Page(status=503)
    await run(rig, site, tmp_path)
    assert await stored(rig) == ["index.html", "moved.html"]


def test_sitemap_that_fails_leaves_the_scan_incomplete(site: SiteServer, tmp_path: Path) -> None:
    """Of what it lists nothing is known, unless it could be read before."""
    index = f"<sitemapindex><sitemap><loc>{site.url}/one.xml</loc></sitemap></sitemapindex>".encode()
    site.pages |= {"/map.xml": Page(index, headers=XML), "/one.xml": Page(status=500)}
    source = source_of(site, tmp_path, start=[f"{site.url}/map.xml"])
    assert [type(one) for one in source.scan()] == [ParseFailure]
    assert not source.complete
    site.pages["/one.xml"] = Page(f"<urlset><url><loc>{site.url}/b.html</loc></url></urlset>".encode(), headers=XML)
    assert read(source)[0] == ["b.html"]
    assert source.complete
    site.pages["/one.xml"] = Page(status=500)
    assert read(source)[0] == ["b.html"]
    assert source.complete
    site.pages["/one.xml"] = Page(b"oops", headers=XML)
    assert read(source)[0] == []
    assert not source.complete


def test_entry_of_a_sitemap_that_is_no_address_is_left_out(site: SiteServer, tmp_path: Path) -> None:
    """It is named, and the others are read."""
    places = ["http://example.org:99999/x", "http://example.org:abc/", "http://[::1/", f"{site.url}/b.html"]
    entries = "".join(f"<url><loc>{place}</loc></url>" for place in places)
    site.pages["/map.xml"] = Page(f"<urlset>{entries}</urlset>".encode(), headers=XML)
    items, left = read(source_of(site, tmp_path, start=[f"{site.url}/map.xml"]))
    assert items == ["b.html"]
    assert [one.path for one in left if isinstance(one, SkippedFile)] == places[:3]


def test_page_that_two_addresses_lead_to_is_listed_once(site: SiteServer, tmp_path: Path) -> None:
    """Whether the redirect comes first or the page itself."""
    moved = Page(status=302, headers={"location": "/b.html"})
    site.pages |= {"/": page("start", "/old1.html", "/b.html", "/old2.html"), "/old1.html": moved, "/old2.html": moved}
    assert read(source_of(site, tmp_path)) == (["index.html", "b.html"], [])


def test_include_and_exclude_bound_what_is_read(site: SiteServer, tmp_path: Path) -> None:
    """`include` takes the place of what lies below the start; `exclude` has the last word; the start is always read."""
    start = f"{site.url}/docs/"
    site.pages["/docs/"] = page("docs", "/docs/x.html", "/b.html", "/a.html")
    site.pages["/docs/x.html"] = page("about x")
    assert read(source_of(site, tmp_path, start=[start]))[0] == ["docs/index.html", "docs/x.html"]
    wide = source_of(site, tmp_path, start=[start], include=[f"{site.url}/*"], exclude=["*/a.html"])
    assert read(wide)[0] == ["docs/index.html", "docs/x.html", "b.html"]


def test_time_bounds_a_request_as_a_whole(site: SiteServer, tmp_path: Path) -> None:
    """A server that sends a byte now and then does not hold the crawl, packed or not."""
    packed = {"content-type": "text/html", "content-encoding": "gzip"}
    site.pages |= {"/a.html": Page(drips=True), "/b.html": Page(drips=True, headers=packed)}
    fetcher = Fetcher(AddressGuard(True), 0.4, "headrace")
    for path in ("/a.html", "/b.html"):
        with pytest.raises(SourceUnavailable, match="cannot be fetched"):
            fetcher.fetch(f"{site.url}{path}", tmp_path / "body", 1_000_000)
    fetcher.close()


@pytest.mark.parametrize(("asked", "wait_s"), [("7", 7.0), ("Wed, 21 Oct 2015 07:28:00 GMT", 0.0), ("soon", 0.0)])
def test_server_says_when_to_come_again(site: SiteServer, tmp_path: Path, asked: str, wait_s: float) -> None:
    """Retry-After goes with the error, in seconds, to whoever tries again."""
    for status in (429, 503):
        site.pages["/a.html"] = Page(status=status, headers={"retry-after": asked})
        fetcher = Fetcher(AddressGuard(True), 5.0, "headrace")
        with pytest.raises(SourceUnavailable) as refused:
            fetcher.fetch(f"{site.url}/a.html", tmp_path / "body", 1_000)
        fetcher.close()
        assert refused.value.retry_after_s == wait_s


@pytest.mark.parametrize("target", ["http://169.254.169.254/latest", "http://[::1]/", "http://2130706433/"])
def test_redirect_to_a_literal_private_address_is_refused(site: SiteServer, tmp_path: Path, target: str) -> None:
    """However it is spelt."""
    site.pages["/go"] = Page(status=302, headers={"location": target})

    class Guard(AddressGuard):
        def resolve(self, host: str, port: int) -> list[str]:
            return ["127.0.0.1"] if host == "outer.example" else super().resolve(host, port)

    fetcher = Fetcher(Guard(False), 5.0, "headrace")
    with pytest.raises(ItemUnreadable) as refused:
        fetcher.fetch(f"http://outer.example:{site.port}/go", tmp_path / "body", 1_000)
    fetcher.close()
    assert refused.value.kind == "forbidden_address"


def test_redirect_to_no_address_is_a_failure_of_that_page(site: SiteServer, tmp_path: Path) -> None:
    """The crawl goes on."""
    site.pages["/a.html"] = Page(status=302, headers={"location": "http://[::1/"})
    items, left = read(source_of(site, tmp_path))
    assert items == ["index.html"]
    assert [one.path for one in left if isinstance(one, ParseFailure)] == [f"{site.url}/a.html"]
