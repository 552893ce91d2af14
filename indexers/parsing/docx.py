"""Word documents (DOCX) to canonical Markdown, from their XML: what a reader sees, in the order of the text.

Headings come from the outline levels of styles, lists from their numbering, tables as tables. Text boxes, content
controls, links and insertions are text like any other; deletions and hidden text are not. Foot- and endnotes stand at
the end; headers, footers, comments and pictures are left out. python-docx passes over boxes, controls and insertions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from xml.etree.ElementTree import Element

from indexers.errors import ParseFailed
from indexers.parsing.docx_styles import Numbering, outline_level, outline_levels, read_numbering
from indexers.parsing.markdown_writer import MarkdownWriter
from indexers.parsing.office_parts import core_title, macro_warning
from indexers.parsing.options import ParseOptions, SourceFile, clean, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.sandbox.archives import open_archive
from indexers.sandbox.xml import parse_xml
from indexers.types import Document, TextFormat

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_MAIN = "word/document.xml"
_NOTES = ("word/footnotes.xml", "word/endnotes.xml")
_LEFT_OUT = frozenset({f"{_W}del", f"{_W}moveFrom", f"{_MC}Fallback", f"{_W}instrText", f"{_W}delText"})
_NO_TEXT = _LEFT_OUT | {f"{_W}txbxContent", f"{_W}pPr"}
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
        reader = _Reader(writer, outline_levels(archive, file.name), read_numbering(archive, file.name))
        reader.blocks(parse_xml(archive.read(_MAIN), file.name))
        for part in _NOTES:
            if part in archive:
                reader.notes(parse_xml(archive.read(part), file.name))
        reader.end_list()
        title = core_title(archive, file.name)
        warnings = macro_warning(archive)
    text, cleaned = clean(writer.text())
    require_text(text, file.name, options)
    document = Document(
        file.name, title or reader.first_heading or file.stem, text, TextFormat.MARKDOWN, source_uri=file.uri
    )
    return ParsedDocument(document, warnings + cleaned)


class _Reader:
    """Writes the blocks of a part, one after another."""

    def __init__(self, writer: MarkdownWriter, levels: Mapping[str, int], numbering: Numbering) -> None:
        self._writer = writer
        self._levels = levels
        self._numbering = numbering
        self._open_items = 0
        self.first_heading = ""

    def blocks(self, root: Element) -> None:
        """Writes every paragraph and table, wherever it is nested."""
        for block in _found(root, _BLOCKS):
            if block.tag == f"{_W}tbl":
                self.end_list()
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
        place = self._numbering.place(properties)
        if not text:
            pass
        elif level:
            self.end_list()
            self.first_heading = self.first_heading or " ".join(text.split())
            self._writer.heading(level, text)
        elif place is not None:
            self._item(text, place)
        else:
            self.end_list()
            self._writer.paragraph(text)
        for boxed in _found(paragraph, {f"{_W}txbxContent"}):
            self.blocks(boxed)

    def end_list(self) -> None:
        """Ends the list that is being written, if there is one."""
        if self._open_items:
            self._close_items(0)
            self._writer.close_list()

    def _item(self, text: str, place: tuple[str, int]) -> None:
        """Writes an item, which stays open for those of deeper levels."""
        self._close_items(place[1])
        self._writer.open_item(self._numbering.mark(place))
        self._open_items += 1
        self._writer.paragraph(text)

    def _close_items(self, level: int) -> None:
        while self._open_items > level:
            self._writer.close_item()
            self._open_items -= 1

    def _level(self, properties: Element | None) -> int:
        """Returns the outline level from 1; 0 for body text."""
        if properties is None:
            return 0
        direct = properties.find(f"{_W}outlineLvl")
        if direct is not None:
            return outline_level(direct)
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
        elif element.tag in _NO_TEXT or _is_hidden(element):
            continue
        else:
            waiting.append(iter(element))
    return "".join(parts)


def _is_hidden(run: Element) -> bool:
    vanish = run.find(f"{_W}rPr/{_W}vanish") if run.tag == f"{_W}r" else None
    return vanish is not None and vanish.get(f"{_W}val", "1") not in ("0", "false", "off")


def _cell_texts(cell: Element) -> Iterator[str]:
    """Yields the paragraphs of a cell, those of tables and boxes in it too."""
    for paragraph in _found(cell, {f"{_W}p"}):
        yield _text(paragraph).strip()
        for boxed in _found(paragraph, {f"{_W}txbxContent"}):
            yield from _cell_texts(boxed)


def _row(row: Element) -> list[str]:
    """Returns the cells; one that spans several columns is followed by empty ones."""
    cells: list[str] = []
    for cell in _found(row, {f"{_W}tc"}):
        cells.append(" ".join(_cell_texts(cell)))
        span = cell.find(f"{_W}tcPr/{_W}gridSpan")
        width = span.get(f"{_W}val", "1") if span is not None else "1"
        cells += [""] * (min(int(width), 64) - 1 if width.isdigit() else 0)
    return cells
