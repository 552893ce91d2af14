"""Sitemaps and indexes of them, packed or not, read by an XML parser that expands nothing."""

from __future__ import annotations

import zlib
from urllib.parse import urlsplit

from indexers.errors import ItemUnreadable, ParseFailed
from indexers.sandbox.xml import parse_xml

_MAX_BYTES = 50 * 1024 * 1024  # sitemaps.org
_GZIP = b"\x1f\x8b"


def is_sitemap(url: str) -> bool:
    """Tells by its name whether an address is that of a sitemap."""
    return urlsplit(url).path.lower().endswith((".xml", ".xml.gz"))


def sitemap_entries(content: bytes, url: str) -> list[str]:
    """Returns the addresses that a sitemap, or an index of sitemaps, lists.

    Raises:
        ItemUnreadable: it is no sitemap, or unpacks to too much.
    """
    if content.startswith(_GZIP):
        content = _unpacked(content, url)
    try:
        root = parse_xml(content, url)
    except ParseFailed as error:
        raise ItemUnreadable(url, f"is no sitemap: {error.reason}", "unparsable") from error
    places = (one for one in root.iter() if str(one.tag).rpartition("}")[2] == "loc")
    return [place.text.strip() for place in places if place.text and place.text.strip()]


def _unpacked(content: bytes, url: str) -> bytes:
    unpacking = zlib.decompressobj(wbits=31)
    try:
        unpacked = unpacking.decompress(content, _MAX_BYTES + 1)
    except zlib.error as error:
        raise ItemUnreadable(url, "is a sitemap that cannot be unpacked", "unparsable") from error
    if len(unpacked) > _MAX_BYTES:
        raise ItemUnreadable(url, f"unpacks to more than {_MAX_BYTES} bytes", "bomb")
    return unpacked
