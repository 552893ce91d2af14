"""XML files of any kind: the text of their elements, a paragraph each, under the names of those that hold others."""

from __future__ import annotations

from xml.etree.ElementTree import Element

from indexers.parsing.options import ParseOptions, SourceFile, clean, read_bounded, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.sandbox.xml import parse_xml
from indexers.types import Document

_TITLES = ("title", "name", "subject")


def parse_xml_file(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads an XML file.

    Raises:
        ParseFailed: too large, not well-formed, declaring entities, or without text.
    """
    root = parse_xml(read_bounded(file, options), file.name)
    paragraphs: list[str] = []
    for element in root.iter():
        own = [element.text, *(child.tail for child in element)]
        if text := " ".join(" ".join(part.split()) for part in own if part and part.strip()):
            paragraphs.append(text if element is root else f"{_local(element)}: {text}")
    text, warnings = clean("\n\n".join(paragraphs))
    require_text(text, file.name, options)
    document = Document(file.name, _title(root) or file.stem, text, source_uri=file.uri)
    return ParsedDocument(document, warnings)


def _title(root: Element) -> str:
    found = (one.text or "" for one in root.iter() if _local(one).lower() in _TITLES)
    return " ".join(next(found, "").split())[:1_000]


def _local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]
