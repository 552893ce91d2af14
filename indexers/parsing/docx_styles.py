"""What the styles of a Word document make of its paragraphs: headings of a level, items of a list."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

from indexers.sandbox.archives import Archive
from indexers.sandbox.xml import parse_xml

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_STYLES = "word/styles.xml"
_NUMBERING = "word/numbering.xml"
_UNNUMBERED = frozenset({"bullet", "none"})
_BULLET = ("bullet", 1)
_DEEPEST = 8  # levels of a list, from 0

_Place = tuple[str, int]  # the list and the level in it, from 0


class Numbering:
    """Says which paragraphs are items of which list, and counts the numbered ones."""

    def __init__(self, formats: Mapping[_Place, tuple[str, int]], styles: Mapping[str, _Place]) -> None:
        self._formats = formats
        self._styles = styles
        self._counts: dict[str, list[int]] = {}  # of the items at each level that is open, by list

    def place(self, properties: Element | None) -> _Place | None:
        """Returns the list of a paragraph, which it or its style says; None when it is no item."""
        if properties is None:
            return None
        style = _value(properties.find(f"{_W}pStyle"))
        direct = _place(properties)
        place = direct if direct is not None else self._styles.get(style)
        return None if place is None or place[0] == "0" else place  # list 0 takes an item out of its style's

    def mark(self, place: _Place) -> str:
        """Returns the mark of the next item at a place: a bullet, or a number."""
        listed, level = place
        counts = self._counts.setdefault(listed, [])
        del counts[level + 1 :]  # a deeper level starts anew
        while len(counts) <= level:
            counts.append(self._formats.get((listed, len(counts)), _BULLET)[1] - 1)
        counts[level] += 1
        return "-" if self._formats.get(place, _BULLET)[0] in _UNNUMBERED else f"{counts[level]}."


def read_numbering(archive: Archive, name: str) -> Numbering:
    """Reads the lists of a document, and which styles belong to them."""
    styles = dict(_numbered_styles(archive, name))
    if _NUMBERING not in archive:
        return Numbering({}, styles)
    root = parse_xml(archive.read(_NUMBERING), name)
    drawn = {one.get(f"{_W}abstractNumId", ""): dict(_formats(one)) for one in root.iter(f"{_W}abstractNum")}
    formats = {
        (number.get(f"{_W}numId", ""), level): kind
        for number in root.iter(f"{_W}num")
        for level, kind in drawn.get(_value(number.find(f"{_W}abstractNumId")), {}).items()
    }
    return Numbering(formats, styles)


def outline_levels(archive: Archive, name: str) -> dict[str, int]:
    """Returns the outline level of each style that has one, also by inheritance."""
    own: dict[str, int] = {}
    bases: dict[str, str] = {}
    for style in _styles(archive, name):
        identity = style.get(f"{_W}styleId", "")
        level, base = style.find(f"{_W}pPr/{_W}outlineLvl"), style.find(f"{_W}basedOn")
        if level is not None:
            own[identity] = outline_level(level)
        if base is not None:
            bases[identity] = _value(base)
    return {identity: found for identity in {*own, *bases} if (found := _inherited(identity, own, bases))}


def outline_level(element: Element) -> int:
    """Returns the level that an element says, from 1; 0 for body text."""
    value = element.get(f"{_W}val", "9")
    return int(value) + 1 if value in tuple("012345678") else 0


def _styles(archive: Archive, name: str) -> Iterator[Element]:
    if _STYLES in archive:
        yield from parse_xml(archive.read(_STYLES), name).iter(f"{_W}style")


def _inherited(identity: str, own: Mapping[str, int], bases: Mapping[str, str]) -> int:
    for _ in range(len(bases) + 1):
        if identity in own:
            return own[identity]
        if identity not in bases:
            return 0
        identity = bases[identity]
    return 0


def _numbered_styles(archive: Archive, name: str) -> Iterator[tuple[str, _Place]]:
    for style in _styles(archive, name):
        properties = style.find(f"{_W}pPr")
        place = None if properties is None else _place(properties)
        if place is not None:
            yield style.get(f"{_W}styleId", ""), place


def _place(properties: Element) -> _Place | None:
    found = properties.find(f"{_W}numPr")
    if found is None:
        return None
    level = _value(found.find(f"{_W}ilvl"))
    return _value(found.find(f"{_W}numId")), min(int(level), _DEEPEST) if level in tuple("0123456789") else 0


def _formats(drawn: Element) -> Iterator[tuple[int, tuple[str, int]]]:
    """Yields the levels of a list, each with how it is numbered and the number that it starts with."""
    for level in drawn.iter(f"{_W}lvl"):
        place, start = level.get(f"{_W}ilvl", ""), _value(level.find(f"{_W}start"))
        if place in tuple("012345678"):
            first = int(start) if start.isascii() and start.isdigit() and len(start) < 6 else 1
            yield int(place), (_value(level.find(f"{_W}numFmt")), first)


def _value(element: Element | None) -> str:
    return "" if element is None else element.get(f"{_W}val", "")
