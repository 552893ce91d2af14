"""The lines of a PDF page with the size of their letters, and which of them are headings.

A PDF says where letters stand, not what they are. What is set larger than the running text, in few short lines, is a
heading; the larger, the higher its level. Sizes are those that a reader sees: of the font, times the scale that it is
drawn at. Bold headings of the text's own size are not told from emphasis, so they stay text.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import pypdfium2  # type: ignore[import-untyped]
import pypdfium2.raw as pdfium  # type: ignore[import-untyped]

from indexers.parsing.markdown_writer import escaped

_HYPHEN = re.compile("[\ufffe\x02]\\s*")  # how PDFium marks a word that was divided at the end of a line
_LARGER = 1.15  # than the running text, from which on a line is a heading
_LEVELS = 4
_LONGEST = 200  # characters of a heading
_MOST_LINES = 3  # of a heading
_MOST_SHARE = 0.3  # of the characters in headings, above which sizes say nothing
_REPEATED = 3  # pages with the same heading, from which on it may be one that runs along


@dataclass(frozen=True, slots=True)
class Line:
    """A line as it is printed."""

    text: str  # without space at its ends
    size: float  # of its letters in points, to the half; 0 when it is not known


@dataclass(frozen=True, slots=True)
class _Group:
    text: str  # of lines of one size that follow each other
    size: float
    line_count: int


def page_lines(layer: pypdfium2.PdfTextPage) -> list[Line]:
    """Returns the lines of a page in PDFium's order; words that were divided at their ends are made whole."""
    lines: list[Line] = []
    position, divided = 0, False
    for raw in str(layer.get_text_range()).splitlines(keepends=True):
        text = _HYPHEN.sub("", raw).strip()
        if divided and text:
            lines[-1] = Line(lines[-1].text + text, lines[-1].size)
        elif not divided:
            lines.append(Line(text, _size(layer, position + _first_letter(raw)) if text else 0.0))
        divided = raw.rstrip()[-1:] in ("\ufffe", "\x02") or (divided and not text)
        # PDFium counts in UTF-16, where a character may be two.
        position += len(raw) if raw.isascii() else len(raw.encode("utf-16-le", "surrogatepass")) // 2
    return lines


def plain_text(lines: Sequence[Line]) -> str:
    """Returns the text of a page whose sizes say nothing."""
    return "\n".join(line.text for line in lines)


def headed_pages(pages: Sequence[Sequence[Line]]) -> list[str]:
    """Returns the pages as Markdown with headings; empty when sizes tell of none."""
    grouped = [list(_groups(page)) for page in pages]
    levels = _levels([group for page in grouped for group in page])
    running = _running(grouped, levels)
    if not levels or not any(_is_heading(group, levels, running) for page in grouped for group in page):
        return []
    return ["\n\n".join(_block(group, levels, running) for group in page) for page in grouped]


def _first_letter(raw: str) -> int:
    """Returns the place of the first letter of a line, since signs before it may be of another font."""
    letters = (place for place, character in enumerate(raw) if character.isalpha())
    return next(letters, len(raw) - len(raw.lstrip()))


def _size(layer: pypdfium2.PdfTextPage, place: int) -> float:
    index = pdfium.FPDFText_GetCharIndexFromTextIndex(layer, place)
    if index < 0:
        return 0.0
    matrix = pdfium.FS_MATRIX()
    scale = math.hypot(matrix.c, matrix.d) if pdfium.FPDFText_GetMatrix(layer, index, matrix) else 1.0
    size = float(pdfium.FPDFText_GetFontSize(layer, index)) * scale
    return round(size * 2) / 2 if math.isfinite(size) else 0.0


def _groups(lines: Sequence[Line]) -> Iterator[_Group]:
    for size, found in groupby((line for line in lines if line.text), key=lambda line: line.size):
        texts = [line.text for line in found]
        yield _Group("\n".join(texts), size, len(texts))


def _levels(groups: Sequence[_Group]) -> Mapping[float, int]:
    """Returns the level of each size that headings have; empty when sizes cannot be relied on."""
    characters: Counter[float] = Counter()
    for group in groups:
        characters[group.size] += len(group.text)
    characters.pop(0.0, None)
    if len(characters) < 2:
        return {}
    text_size = characters.most_common(1)[0][0]
    found = {group.size for group in groups if group.size >= _LARGER * text_size and _is_short(group)}
    if sum(characters[size] for size in found) > _MOST_SHARE * characters.total():
        return {}
    return {size: min(level, _LEVELS) for level, size in enumerate(sorted(found, reverse=True), 1)}


def _is_short(group: _Group) -> bool:
    return group.line_count <= _MOST_LINES and len(group.text) <= _LONGEST and any(map(str.isalpha, group.text))


def _running(pages: Sequence[Sequence[_Group]], levels: Mapping[float, int]) -> frozenset[str]:
    """Returns large lines that stand on most pages: the name of the document or its chapter, not headings."""
    seen = Counter(text for page in pages for text in {group.text for group in page if group.size in levels})
    return frozenset(text for text, count in seen.items() if count >= max(_REPEATED, len(pages) / 2))


def _is_heading(group: _Group, levels: Mapping[float, int], running: frozenset[str]) -> bool:
    return group.size in levels and _is_short(group) and group.text not in running


def _block(group: _Group, levels: Mapping[float, int], running: frozenset[str]) -> str:
    if _is_heading(group, levels, running):
        return f"{'#' * levels[group.size]} {' '.join(group.text.split())}"
    return escaped(group.text)
