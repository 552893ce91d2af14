"""Presentations (PPTX) to canonical Markdown: a page a slide, its title as heading, then texts, tables and notes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from xml.etree.ElementTree import Element

from indexers.errors import ParseFailed
from indexers.parsing.markdown_writer import MarkdownWriter
from indexers.parsing.office_parts import core_title, macro_warning, relations
from indexers.parsing.options import ParseOptions, SourceFile, clean, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.parsing.pdf import page_ranges
from indexers.sandbox.archives import Archive, open_archive
from indexers.sandbox.xml import parse_xml
from indexers.types import Document, TextFormat

_A = "{http://schemas.openxmlformats.org/drawingml/2006/main}"
_P = "{http://schemas.openxmlformats.org/presentationml/2006/main}"
_R = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}"
_MC = "{http://schemas.openxmlformats.org/markup-compatibility/2006}"
_MAIN = "ppt/presentation.xml"
_TITLES = frozenset({"title", "ctrTitle"})
_FURNITURE = frozenset({"dt", "ftr", "sldNum", "sldImg", "hdr"})


def parse_pptx(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads a presentation; form feeds separate its slides.

    Raises:
        ParseFailed: no such document, encrypted, made to do harm, or without text.
    """
    with open_archive(file.path, file.name) as archive:
        if _MAIN not in archive:
            raise ParseFailed(file.name, "is no presentation: its main part is missing", "wrong_type")
        slides = [_slide(archive, part, file.name) for part in _parts(archive, file.name)]
        title = core_title(archive, file.name)
        macros = macro_warning(archive)
    empty = [number for number, slide in enumerate(slides, 1) if not slide.strip()]
    text, warnings = clean("\f".join(slides), keep_pages=True)
    require_text(text.replace("\f", ""), file.name, options)
    if empty:
        warnings += (f"slides {page_ranges(empty)} have no text ({len(empty)} of {len(slides)})",)
    document = Document(file.name, title or file.stem, text, TextFormat.MARKDOWN, source_uri=file.uri)
    return ParsedDocument(document, warnings + macros)


def _parts(archive: Archive, name: str) -> Iterator[str]:
    """Yields the slides in the order in which they are shown."""
    related = relations(archive, _MAIN, name)
    for slide in parse_xml(archive.read(_MAIN), name).iter(f"{_P}sldId"):
        _, part = related.get(slide.get(f"{_R}id", ""), ("", ""))
        if part in archive:
            yield part


def _slide(archive: Archive, part: str, name: str) -> str:
    writer = MarkdownWriter()
    shapes = list(_shapes(parse_xml(archive.read(part), name)))
    for kind, shape in sorted(shapes, key=lambda one: one[0] not in _TITLES):
        if kind in _TITLES:
            writer.heading(1, " ".join(_paragraphs(shape)))
        elif shape.tag == f"{_A}tbl":
            writer.table(
                [[" ".join(_paragraphs(cell)) for cell in row.iter(f"{_A}tc")] for row in shape.iter(f"{_A}tr")]
            )
        else:
            for paragraph in _paragraphs(shape):
                writer.paragraph(paragraph)
    related = list(relations(archive, part, name).values())
    for line in _lines(archive, related, "diagramData", name):
        writer.paragraph(line)
    notes = list(_lines(archive, related, "notesSlide", name))
    writer.heading(2, "Notes" if notes else "")
    for line in notes:
        writer.paragraph(line)
    return writer.text()


def _lines(archive: Archive, related: Iterable[tuple[str, str]], wanted: str, name: str) -> Iterator[str]:
    """Yields the texts of what is related to a slide in one way: its notes without their furniture, its diagrams."""
    for kind, part in related:
        if kind == wanted and part in archive:
            root = parse_xml(archive.read(part), name)
            shapes = [shape for place, shape in _shapes(root) if place == "body"] if wanted == "notesSlide" else [root]
            yield from (line for shape in shapes for line in _paragraphs(shape))


def _shapes(root: Element) -> Iterator[tuple[str, Element]]:
    """Yields shapes with text and tables, each with the kind of its placeholder, less dates, numbers and footers."""
    waiting = [iter(root)]
    while waiting:
        element = next(waiting[-1], None)
        if element is None:
            waiting.pop()
            continue
        if element.tag == f"{_MC}Fallback":  # the same once more, for older programs
            continue
        waiting.append(iter(element))
        if element.tag == f"{_P}sp":
            place = element.find(f"{_P}nvSpPr/{_P}nvPr/{_P}ph")
            kind = "" if place is None else place.get("type", "body")
            if kind not in _FURNITURE:
                yield kind, element
        elif element.tag == f"{_A}tbl":
            yield "table", element


def _paragraphs(root: Element) -> list[str]:
    return [text for one in root.iter(f"{_A}p") if (text := _text(one).strip())]


def _text(paragraph: Element) -> str:
    parts: list[str] = []
    for element in paragraph.iter():
        if element.tag == f"{_A}t":
            parts.append(element.text or "")
        elif element.tag == f"{_A}br":
            parts.append("\n")
    return "".join(parts)
