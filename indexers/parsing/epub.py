"""Books (EPUB) to canonical Markdown: the chapters in the order of the spine, each read as the HTML page that it is.

A chapter without a heading gets the one that the table of contents has for it, which itself is left out.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from indexers.errors import ParseFailed
from indexers.parsing.charsets import decode
from indexers.parsing.epub_package import local_name, read_contents, read_package
from indexers.parsing.html import page_text
from indexers.parsing.options import ParseOptions, SourceFile, clean, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.sandbox.archives import Archive, open_archive
from indexers.sandbox.xml import parse_xml
from indexers.types import Document, TextFormat

_CONTAINER = "META-INF/container.xml"
_ENCRYPTION = "META-INF/encryption.xml"
_HEADING = re.compile(r"^#{1,6} ", re.MULTILINE)


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
        book = read_package(root, package)
        hidden = _encrypted(archive, file.name)
        present = [part for part in book.chapters if part in archive and part not in hidden]
        contents = read_contents(archive, book, file.name)
        chapters = [text for part in present if (text := _chapter(archive, part, contents.get(part, ""), file.name))]
    if book.chapters and hidden.issuperset(book.chapters):
        raise ParseFailed(file.name, "is protected: its chapters are encrypted", "encrypted")
    text, warnings = clean("\n".join(chapters))
    require_text(text, file.name, options)
    if missing := len(book.chapters) - len(present):
        warnings += (f"{missing} of {len(book.chapters)} chapters are encrypted or missing",)
    document = Document(file.name, book.title or file.stem, text, TextFormat.MARKDOWN, source_uri=file.uri)
    return ParsedDocument(document, warnings)


def _package(archive: Archive, name: str) -> str:
    for element in parse_xml(archive.read(_CONTAINER), name).iter():
        if local_name(element) == "rootfile":
            return element.get("full-path", "")
    return ""


def _encrypted(archive: Archive, name: str) -> frozenset[str]:
    """Returns the parts that are encrypted; often these are only fonts."""
    if _ENCRYPTION not in archive:
        return frozenset()
    root = parse_xml(archive.read(_ENCRYPTION), name)
    return frozenset(unquote(one.get("URI", "")) for one in root.iter() if local_name(one) == "CipherReference")


def _chapter(archive: Archive, part: str, title: str, name: str) -> str:
    """Returns a chapter under its own heading, or the one that the table of contents says."""
    source, _ = decode(archive.read(part))
    text = page_text(clean(source)[0], name)
    if not text or not title or _HEADING.search(text):
        return text
    return f"# {title}\n\n{text}"
