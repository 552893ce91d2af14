"""What the package of a book says: its title, its chapters in reading order, and what its contents list calls them."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from indexers.errors import ParseFailed
from indexers.sandbox.archives import Archive
from indexers.sandbox.xml import parse_xml

_PAGES = frozenset({"application/xhtml+xml", "text/html"})
_OLD_CONTENTS = "application/x-dtbncx+xml"


@dataclass(frozen=True, slots=True)
class Package:
    """A book; parts are named by their path in the archive."""

    title: str  # may be empty
    chapters: tuple[str, ...]  # less the table of contents
    contents: tuple[str, ...]  # parts that hold the table of contents, in the new format or the old one


def read_package(root: Element, path: str) -> Package:
    """Returns what the package at a path says."""
    folder = posixpath.dirname(path)
    items = {one.get("id", ""): one for one in root.iter() if local_name(one) == "item"}
    contents = {  # in the order of the package
        part_at(folder, one.get("href", "")): None
        for one in items.values()
        if one.get("media-type") == _OLD_CONTENTS or "nav" in one.get("properties", "").split()
    }
    spine = [items.get(one.get("idref", "")) for one in root.iter() if local_name(one) == "itemref"]
    pages = [one.get("href", "") for one in spine if one is not None and one.get("media-type", "") in _PAGES]
    chapters = [part for href in pages if (part := part_at(folder, href)) not in contents]
    title = next((one.text or "" for one in root.iter() if local_name(one) == "title"), "")
    return Package(" ".join(title.split()), tuple(chapters), tuple(contents))


def read_contents(archive: Archive, book: Package, name: str) -> Mapping[str, str]:
    """Returns what the table of contents calls each part; the first name of a part is that of its chapter."""
    found: dict[str, str] = {}
    for part in book.contents:
        if part in archive:
            for href, label in _entries(archive.read(part), name):
                found.setdefault(part_at(posixpath.dirname(part), href.partition("#")[0]), label)
    return found


def part_at(folder: str, href: str) -> str:
    """Returns the part that a reference leads to."""
    return posixpath.normpath(posixpath.join(folder, unquote(href)))


def local_name(element: Element) -> str:
    """Returns the name of an element without its namespace."""
    return str(element.tag).rpartition("}")[2]


def _entries(source: bytes, name: str) -> Iterator[tuple[str, str]]:
    """Yields the places that a table of contents leads to, with what it calls them; none of one that is broken."""
    try:
        root = parse_xml(source, name)
    except ParseFailed as failed:
        if failed.kind != "unparsable":
            raise
        return
    for one in root.iter():
        if local_name(one) == "a" and one.get("href"):
            yield one.get("href", ""), _text(one)
        elif local_name(one) == "navPoint":
            label = next((_text(child) for child in one if local_name(child) == "navLabel"), "")
            place = next((child.get("src", "") for child in one if local_name(child) == "content"), "")
            yield place, label


def _text(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())[:1_000]
