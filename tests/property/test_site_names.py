"""What the pages of a site are called."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.sources.site_urls import canonical, item_name

SEGMENTS = st.text("ab.%~ /2Ffé_-index.html", max_size=12)
ADDRESSES = st.builds(
    lambda scheme, port, path, query: f"{scheme}://example.org{port}/{path}{query}",
    st.sampled_from(["http", "https"]),
    st.sampled_from(["", ":8080"]),
    SEGMENTS,
    st.sampled_from(["", "?a=1", "?a=2"]),
)


@given(st.lists(ADDRESSES, min_size=2, max_size=8))
def test_different_pages_have_different_names(addresses: list[str]) -> None:
    """Else one page would take the other's place, again and again."""
    urls = {canonical(one) for one in addresses}
    names = {item_name(one, ".html", "https") for one in urls}
    assert len(names) == len(urls)
    for name in names:
        assert name.endswith(".html")
        assert not {".", ".."} & set(name.split("/"))


@given(ADDRESSES)
def test_canonical_addresses_stay_as_they_are(address: str) -> None:
    """One spelling is one spelling, and it leads where the address did."""
    once = canonical(address)
    assert canonical(once) == once
    assert urlsplit(once).path.lower().count("%2f") == urlsplit(address).path.lower().count("%2f")


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://example.org/", "example.org/index.html"),
        ("https://example.org/a/b.html", "example.org/a/b.html"),
        ("https://example.org/a/", "example.org/a/index.html"),
        ("https://example.org:8080/gr%C3%BC%C3%9Fe.html", "example.org+8080/grüße.html"),
    ],
)
def test_name_that_says_it_all_is_the_path(url: str, name: str) -> None:
    """Most pages need no hash."""
    assert item_name(url, ".html", "https") == name


@pytest.mark.parametrize("path", ["a", "a.htm", "A.HTML", "a/index.html", "a.html?x=1", "a b.html", "../a.html"])
def test_name_that_would_say_less_than_the_address_has_a_hash(path: str) -> None:
    """Twelve hexadecimal digits of the address."""
    name = item_name(canonical(f"https://example.org/{path}"), ".html", "https")
    assert len(name.removesuffix(".html").rpartition("-")[2]) == 12


def test_long_paths_are_cut() -> None:
    """And still differ."""
    names = {item_name(f"https://example.org/{'a' * 900}{end}.html", ".html", "https") for end in "xyz"}
    assert len(names) == 3
    assert max(map(len, names)) < 450
