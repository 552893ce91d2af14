"""Chooses the parser by the file's name, and checks by its first bytes that the name is true."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from indexers.errors import ParseFailed
from indexers.parsing.charsets import marked_encoding
from indexers.parsing.code import CODE_SUFFIXES, parse_code
from indexers.parsing.csv import parse_csv
from indexers.parsing.docx import parse_docx
from indexers.parsing.epub import parse_epub
from indexers.parsing.html import parse_html
from indexers.parsing.json_file import parse_json
from indexers.parsing.jsonl import parse_jsonl
from indexers.parsing.mail import parse_eml, parse_mbox
from indexers.parsing.markdown import parse_markdown
from indexers.parsing.notebook import parse_notebook
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parquet import parse_parquet
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SkippedFile, SourceItem
from indexers.parsing.pdf import parse_pdf
from indexers.parsing.plain import parse_plain
from indexers.parsing.pptx import parse_pptx
from indexers.parsing.rst import parse_rst
from indexers.parsing.sheets import parse_sheets
from indexers.parsing.xml_file import parse_xml_file

_SNIFFED = 1024
_HTML_STARTS = (b"<!doctype html", b"<html", b"<head", b"<body")
_BINARY_STARTS = {
    b"PK\x03\x04": "a zip archive (or an Office document)",
    b"\xd0\xcf\x11\xe0": "an old Office document",
    b"\x1f\x8b": "gzip-compressed",
    b"\x89PNG": "a PNG image",
    b"\xff\xd8\xff": "a JPEG image",
    b"GIF8": "a GIF image",
    b"\x7fELF": "a program",
    b"SQLite format 3": "an SQLite database",
}

_ONE: dict[str, Callable[[SourceFile, ParseOptions], ParsedDocument]] = {
    ".md": parse_markdown,
    ".markdown": parse_markdown,
    ".rst": parse_rst,
    ".txt": parse_plain,
    ".log": parse_plain,
    ".html": parse_html,
    ".htm": parse_html,
    ".xhtml": parse_html,
    ".pdf": parse_pdf,
    ".docx": parse_docx,
    ".docm": parse_docx,
    ".pptx": parse_pptx,
    ".pptm": parse_pptx,
    ".xlsx": parse_sheets,
    ".xlsm": parse_sheets,
    ".xls": parse_sheets,
    ".ods": parse_sheets,
    ".epub": parse_epub,
    ".eml": parse_eml,
    ".ipynb": parse_notebook,
    ".xml": parse_xml_file,
    **dict.fromkeys(CODE_SUFFIXES, parse_code),
}
_MANY: dict[str, Callable[[SourceFile, ParseOptions], Iterable[ParsedDocument | ParseFailure]]] = {
    ".jsonl": parse_jsonl,
    ".csv": parse_csv,
    ".tsv": parse_csv,
    ".json": parse_json,
    ".mbox": parse_mbox,
    ".parquet": parse_parquet,
}
_ZIPS = frozenset({".docx", ".docm", ".pptx", ".pptm", ".xlsx", ".xlsm", ".ods", ".epub"})
_OWN_MARK = frozenset({*_ZIPS, ".xls", ".parquet"})  # what their first bytes are is for their parsers to check

SUFFIXES = frozenset({*_ONE, *_MANY})


def parse_file(file: SourceFile, options: ParseOptions | None = None) -> Iterator[SourceItem]:
    """Yields the documents of a file and what failed of it: at least one item, whatever the file is.

    A file whose suffix is not read, or that is no regular file, is skipped.
    """
    # Names that are no valid UTF-8 come from the system with surrogates, which cannot be stored or shown.
    file = replace(file, name=file.name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"))
    found = False
    try:
        for item in _parse(file, options or ParseOptions()):
            found = True
            yield item
    except ParseFailed as failed:
        found = True
        yield ParseFailure(file.name, file.uri, failed.reason, failed.kind)
    except OSError as error:
        found = True
        yield ParseFailure(file.name, file.uri, f"cannot be read: {error.strerror or error}", "unreadable")
    if not found:
        yield ParseFailure(file.name, file.uri, "holds no text", "no_text")


def _parse(file: SourceFile, options: ParseOptions) -> Iterable[SourceItem]:
    suffix = file.path.suffix.lower()
    if suffix not in SUFFIXES:
        return [SkippedFile(file.name, f"suffix {suffix or 'none'} is not read")]
    if not stat.S_ISREG(file.path.stat().st_mode):
        return [SkippedFile(file.name, "is no regular file")]
    with file.path.open("rb") as opened:
        _check_first_bytes(file.name, suffix, opened.read(_SNIFFED))
    if suffix in _MANY:
        return _MANY[suffix](file, options)
    return [_ONE[suffix](file, options)]


def _check_first_bytes(name: str, suffix: str, start: bytes) -> None:
    if not start.strip():
        raise ParseFailed(name, "holds no text", "no_text")
    is_pdf = b"%PDF-" in start if suffix == ".pdf" else start.startswith(b"%PDF-")
    if is_pdf != (suffix == ".pdf"):
        reason = f"is {_nature(start)} by its first bytes, not {suffix}; rename it or leave it out"
        raise ParseFailed(name, reason, "wrong_type")
    if suffix in _OWN_MARK:
        return
    binary = next((what for mark, what in _BINARY_STARTS.items() if start.startswith(mark)), "")
    if not binary and suffix != ".pdf" and b"\x00\x00" in start and not marked_encoding(start):
        binary = "binary"
    if binary:
        raise ParseFailed(name, f"is {binary} by its first bytes, not {suffix}; leave it out", "wrong_type")


def _nature(start: bytes) -> str:
    if start.startswith(b"%PDF-"):
        return "a PDF file"
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").lower().startswith(_HTML_STARTS):
        return "an HTML page"
    return next((what for mark, what in _BINARY_STARTS.items() if start.startswith(mark)), "something else than PDF")
