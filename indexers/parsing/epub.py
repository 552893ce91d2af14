"""Books (EPUB) to canonical Markdown: the chapters in the order of the spine, each read as the HTML page that it is."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote
from xml.etree.ElementTree import Element

from indexers.errors import ParseFailed
from indexers.parsing.charsets import decode
from indexers.parsing.html import page_text
from indexers.parsing.options import ParseOptions, SourceFile, clean, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.sandbox.archives import Archive, open_archive
from indexers.sandbox.xml import parse_xml
from indexers.types import Document, TextFormat

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_PAGES = frozenset({"application/xhtml+xml", "text/html"})


def parse_epub(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads a book.

    Raises:
        ParseFailed: no such document, protected, made to do harm, or without text.
    """
    with open_archive(file.path, file.name) as archive:
        if _CONTAINER not in archive:
            raise ParseFailed(file.name, "is no EPUB: it names no package", "wrong_type")
        package = _package(archive, file.name)
        if package not in archive:
            raise ParseFailed(file.name, "is no EPUB: its package is missing", "wrong_type")
        root = parse_xml(archive.read(package), file.name)
        chapters = [text for part in _spine(root, package) if (text := _chapter(archive, part, file.name))]
        protected = _ENCRYPTION in archive and not chapters
    if protected:
        raise ParseFailed(file.name, "is protected: its chapters are encrypted", "encrypted")
    text, warnings = clean("\n".join(chapters))
    require_text(text, file.name, options)
    document = Document(file.name, _title(root) or file.stem, text, TextFormat.MARKDOWN, source_uri=file.uri)
    return ParsedDocument(document, warnings)


def _package(archive: Archive, name: str) -> str:
    for element in parse_xml(archive.read(_CONTAINER), name).iter():
        if _local(element) == "rootfile":
            return element.get("full-path", "")
    return ""


def _spine(root: Element, package: str) -> Iterator[str]:
    """Yields the parts of the chapters, in reading order."""
    folder = posixpath.dirname(package)
    pages = {
        one.get("id", ""): posixpath.normpath(posixpath.join(folder, unquote(one.get("href", ""))))
        for one in root.iter()
        if _local(one) == "item" and one.get("media-type", "") in _PAGES
    }
    for one in root.iter():
        if _local(one) == "itemref" and one.get("idref", "") in pages:
            yield pages[one.get("idref", "")]


def _chapter(archive: Archive, part: str, name: str) -> str:
    if part not in archive:
        return ""
    source, _ = decode(archive.read(part))
    return page_text(clean(source)[0], name)


def _title(root: Element) -> str:
    found = next((one.text or "" for one in root.iter() if _local(one) == "title"), "")
    return " ".join(found.split())


def _local(element: Element) -> str:
    return str(element.tag).rpartition("}")[2]
