"""XML files of any kind to canonical Markdown: what their elements say, under headings of those that hold others.

An element with a title among its children is headed by it, another one by its name. Text with elements inside it is
prose, whose parts stay together; an element with nothing but text is a value, and said with its name.
"""

from __future__ import annotations

from xml.etree.ElementTree import Element

from indexers.parsing.markdown_writer import MarkdownWriter
from indexers.parsing.options import ParseOptions, SourceFile, clean, read_bounded, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.sandbox.xml import parse_xml
from indexers.types import Document, TextFormat

_TITLES = ("title", "head", "heading", "name", "label", "subject")
_PROSE = frozenset({"p", "para", "paragraph", "simpara", "text", "summary", "description", "content", "li", "note"})


def parse_xml_file(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads an XML file; its title is the first that an element says.

    Raises:
        ParseFailed: too large, not well-formed, declaring entities, or without text.
    """
    root = parse_xml(read_bounded(file, options), file.name)
    writer = MarkdownWriter()
    if _is_text(root):
        _write_text(writer, root)
    else:
        _write(writer, root, 1)
    text, warnings = clean(writer.text())
    require_text(text, file.name, options)
    document = Document(file.name, _first_title(root) or file.stem, text, TextFormat.MARKDOWN, source_uri=file.uri)
    return ParsedDocument(document, warnings)


def _write(writer: MarkdownWriter, element: Element, level: int) -> bool:
    """Writes what is in an element; the guard of the parser bounds how deep they nest. Returns whether it is headed."""
    title = _title(element)
    # The root holds everything, so that its name says nothing.
    heading = title[1] if title else _label(element) if level > 1 and any(map(_says, element)) else ""
    writer.heading(level, heading)
    below = level + 1 if heading or (level == 1 and not title) else level
    went_deeper = False
    for child in element:
        if title and child is title[0]:
            continue
        if not _is_text(child):
            went_deeper |= _write(writer, child, below)
        elif _says(child):
            if went_deeper:
                writer.heading(level, heading or _label(element))
            went_deeper = False
            _write_text(writer, child)
    return bool(heading) or went_deeper


def _write_text(writer: MarkdownWriter, element: Element) -> None:
    is_prose = len(element) or _local(element) in _PROSE
    writer.paragraph(_text(element) if is_prose else f"{_label(element)}: {_text(element)}")


def _title(element: Element) -> tuple[Element, str] | None:
    found = ((child, _text(child)) for child in element if _local(child) in _TITLES and _is_text(child))
    return next((one for one in found if one[1]), None)


def _says(element: Element) -> bool:
    return _is_text(element) and bool(_text(element))


def _is_text(element: Element) -> bool:
    """Tells whether an element holds text of its own, or nothing at all."""
    return not len(element) or any((part or "").strip() for part in [element.text, *(one.tail for one in element)])


def _text(element: Element) -> str:
    return " ".join("".join(element.itertext()).split())


def _label(element: Element) -> str:
    named = " ".join(element.get("name", "").split())[:100]
    return f"{_local(element)} {named}".strip()


def _first_title(root: Element) -> str:
    found = (_text(one) for one in root.iter() if _local(one) in _TITLES and _is_text(one))
    return next(filter(None, found), "")[:1_000]


def _local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2].lower()
