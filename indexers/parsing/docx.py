"""Word documents (DOCX) to canonical Markdown, from their XML: what a reader sees, in the order of the text.

Headings come from the outline levels of styles, lists from their numbering, tables as tables. Text boxes, content
controls, links and insertions are text like any other; deletions are not. Footnotes and endnotes stand at the end;
headers, footers, comments and pictures are left out. python-docx passes over boxes, controls and insertions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

from indexers.errors import ParseFailed
from indexers.parsing.markdown_writer import MarkdownWriter
from indexers.parsing.office_parts import core_title
from indexers.parsing.options import ParseOptions, SourceFile, clean, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.sandbox.archives import Archive, open_archive
from indexers.sandbox.xml import parse_xml
from indexers.types import Document, TextFormat

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_MAIN = "word/document.xml"
_STYLES = "word/styles.xml"
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_LEFT_OUT = frozenset({f"{_W}del", f"{_W}moveFrom", f"{_MC}Fallback", f"{_W}instrText", f"{_W}delText"})
_BLOCKS = frozenset({f"{_W}p", f"{_W}tbl"})
_SEPARATORS = frozenset({"separator", "continuationSeparator"})


def parse_docx(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads a Word document.

    Raises:
        ParseFailed: no such document, encrypted, made to do harm, or without text.
    """
    with open_archive(file.path, file.name) as archive:
        if _MAIN not in archive:
            raise ParseFailed(file.name, "is no Word document: its main part is missing", "wrong_type")
        writer = MarkdownWriter()
        reader = _Reader(writer, _levels(archive, file.name))
        reader.blocks(parse_xml(archive.read(_MAIN), file.name))
        for part in _NOTES:
            if part in archive:
                reader.notes(parse_xml(archive.read(part), file.name))
        title = core_title(archive, file.name)
        warnings = ("macros were not read",) if any("vbaProject" in name for name in archive.namelist()) else ()
    text, cleaned = clean(writer.text())
    require_text(text, file.name, options)
    document = Document(
        file.name, title or reader.first_heading or file.stem, text, TextFormat.MARKDOWN, source_uri=file.uri
    )
    return ParsedDocument(document, warnings + cleaned)


class _Reader:
    """Writes the blocks of a part, one after another."""

    def __init__(self, writer: MarkdownWriter, levels: Mapping[str, int]) -> None:
        self._writer = writer
        self._levels = levels
        self.first_heading = ""

    def blocks(self, root: Element) -> None:
        """Writes every paragraph and table, wherever it is nested."""
        for block in _found(root, _BLOCKS):
            if block.tag == f"{_W}tbl":
                self._writer.table([_row(row) for row in _found(block, {f"{_W}tr"})])
            else:
                self._paragraph(block)

    def notes(self, root: Element) -> None:
        """Writes footnotes or endnotes, less the lines that separate them."""
        for note in root:
            if note.get(f"{_W}type", "") not in _SEPARATORS:
                self.blocks(note)

    def _paragraph(self, paragraph: Element) -> None:
        text = _text(paragraph).strip()
        properties = paragraph.find(f"{_W}pPr")
        level = self._level(properties)
        if not text:
            pass
        elif level:
            self.first_heading = self.first_heading or " ".join(text.split())
            self._writer.heading(level, text)
        elif properties is not None and properties.find(f"{_W}numPr") is not None:
            self._writer.open_item("-")
            self._writer.paragraph(text)
            self._writer.close_item()
        else:
            self._writer.paragraph(text)
        for boxed in _found(paragraph, {f"{_W}txbxContent"}):
            self.blocks(boxed)

    def _level(self, properties: Element | None) -> int:
        """Returns the outline level from 1; 0 for body text."""
        if properties is None:
            return 0
        direct = properties.find(f"{_W}outlineLvl")
        if direct is not None:
            return _outline(direct)
        style = properties.find(f"{_W}pStyle")
        return 0 if style is None else self._levels.get(style.get(f"{_W}val", ""), 0)


def _found(root: Element, tags: frozenset[str] | set[str]) -> Iterator[Element]:
    """Yields the outermost elements of some tags below the root, in order, less what is left out."""
    waiting = [iter(root)]
    while waiting:
        element = next(waiting[-1], None)
        if element is None:
            waiting.pop()
        elif element.tag in tags:
            yield element
        elif element.tag not in _LEFT_OUT:
            waiting.append(iter(element))


def _text(paragraph: Element) -> str:
    """Returns the text of a paragraph, less that of the boxes anchored in it."""
    parts: list[str] = []
    waiting = [iter(paragraph)]
    while waiting:
        element = next(waiting[-1], None)
        if element is None:
            waiting.pop()
        elif element.tag == f"{_W}t":
            parts.append(element.text or "")
        elif element.tag in (f"{_W}tab", f"{_W}ptab"):
            parts.append(" ")
        elif element.tag in (f"{_W}br", f"{_W}cr"):
            parts.append("\n")
        elif element.tag == f"{_W}noBreakHyphen":
            parts.append("-")
        elif element.tag not in _LEFT_OUT and element.tag not in (f"{_W}txbxContent", f"{_W}pPr"):
            waiting.append(iter(element))
    return "".join(parts)


def _row(row: Element) -> list[str]:
    """Returns the cells; one that spans several columns is followed by empty ones."""
    cells: list[str] = []
    for cell in _found(row, {f"{_W}tc"}):
        cells.append(" ".join(_text(paragraph) for paragraph in cell.iter(f"{_W}p")))
        span = cell.find(f"{_W}tcPr/{_W}gridSpan")
        width = span.get(f"{_W}val", "1") if span is not None else "1"
        cells += [""] * (min(int(width), 64) - 1 if width.isdigit() else 0)
    return cells


def _levels(archive: Archive, name: str) -> dict[str, int]:
    """Returns the outline level of each style that has one, also by inheritance."""
    if _STYLES not in archive:
        return {}
    own: dict[str, int] = {}
    bases: dict[str, str] = {}
    for style in parse_xml(archive.read(_STYLES), name).iter(f"{_W}style"):
        identity = style.get(f"{_W}styleId", "")
        level, base = style.find(f"{_W}pPr/{_W}outlineLvl"), style.find(f"{_W}basedOn")
        if level is not None:
            own[identity] = _outline(level)
        if base is not None:
            bases[identity] = base.get(f"{_W}val", "")
    return {identity: found for identity in {*own, *bases} if (found := _inherited(identity, own, bases))}


def _inherited(identity: str, own: Mapping[str, int], bases: Mapping[str, str]) -> int:
    for _ in range(len(bases) + 1):
        if identity in own:
            return own[identity]
        if identity not in bases:
            return 0
        identity = bases[identity]
    return 0


def _outline(element: Element) -> int:
    value = element.get(f"{_W}val", "9")
    return int(value) + 1 if value.isdigit() and int(value) < 9 else 0
