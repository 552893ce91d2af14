"""Which cells of a workbook (XLSX) show a share as per cent, which the library that reads the values does not tell.

Other formats change how a number looks, this one what a reader takes it for: 0.15 is 15 %. Only where a style asks for
it are the sheets looked through, by a pattern instead of a parser: what it misses is shown as the plain number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from indexers.parsing.office_parts import relations
from indexers.sandbox.archives import Archive
from indexers.sandbox.xml import parse_xml

_BOOK = "xl/workbook.xml"
_STYLES = "xl/styles.xml"
_S = "{http://schemas.openxmlformats.org/spreadsheetml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_BUILT_IN = {"9": 0, "10": 2}  # decimals of the formats that need no declaration (ECMA-376, 18.8.30)
_DECIMALS = re.compile(r"\.([0#?]{1,9})[^.]*%")
_CELL = re.compile(rb"<c\s([^<>]{1,200})>")
_PLACE = re.compile(rb'\br="([A-Z]{1,3})([0-9]{1,7})"')
_STYLE = re.compile(rb'\bs="([0-9]{1,6})"')

Percents = Mapping[tuple[int, int], int]  # row and column from 0, to decimals


def percent_cells(archive: Archive, name: str) -> dict[str, Percents]:
    """Returns the cells that show per cent, by the name of their sheet; sheets without any are missing."""
    styles = dict(_percent_styles(archive, name))
    if not styles or _BOOK not in archive:
        return {}
    related = relations(archive, _BOOK, name)
    found: dict[str, Percents] = {}
    for sheet in parse_xml(archive.read(_BOOK), name).iter(f"{_S}sheet"):
        _, part = related.get(sheet.get(f"{_R}id", ""), ("", ""))
        if part in archive and (cells := dict(_cells(archive.read(part), styles))):
            found[sheet.get("name", "")] = cells
    return found


def as_percent(value: float, decimals: int) -> str:
    """Returns a share as people read it."""
    return f"{value * 100:.{decimals}f}%"


def _percent_styles(archive: Archive, name: str) -> Iterator[tuple[bytes, int]]:
    """Yields the numbers of the styles that show per cent, each with its decimals."""
    if _STYLES not in archive:
        return
    root = parse_xml(archive.read(_STYLES), name)
    formats = dict(_BUILT_IN)
    for one in root.iter(f"{_S}numFmt"):
        code = one.get("formatCode", "").partition(";")[0]  # the first part is that of positive numbers
        if "%" in code:
            decimals = _DECIMALS.search(code)
            formats[one.get("numFmtId", "")] = len(decimals[1]) if decimals else 0
    listed = root.find(f"{_S}cellXfs")
    for number, style in enumerate(listed if listed is not None else ()):
        if style.get("numFmtId", "") in formats:
            yield str(number).encode(), formats[style.get("numFmtId", "")]


def _cells(sheet: bytes, styles: Mapping[bytes, int]) -> Iterator[tuple[tuple[int, int], int]]:
    for cell in _CELL.finditer(sheet):
        place, style = _PLACE.search(cell[1]), _STYLE.search(cell[1])
        if place and style and style[1] in styles:
            column = 0
            for letter in place[1]:
                column = column * 26 + letter - 64
            yield (int(place[2]) - 1, column - 1), styles[style[1]]
