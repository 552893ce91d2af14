"""PDF to text, page by page, through PDFium; Markdown where the sizes of letters tell headings.

PDFium is chosen for what it reads: broken files that browsers open, and every standard encryption without another
library. It is native code that is not thread-safe, so one file is read at a time. Pages that hold no text are named,
since a scan that is indexed as nothing looks like a success.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import pypdfium2  # type: ignore[import-untyped]

from indexers.errors import ParseFailed
from indexers.parsing.options import ParseOptions, SourceFile, clean, read_bounded, require_text
from indexers.parsing.parsed import ParsedDocument
from indexers.parsing.pdf_lines import Line, headed_pages, page_lines, plain_text
from indexers.types import Document, TextFormat

_ONE_AT_A_TIME = threading.Lock()

# FPDF_GetLastError, as fpdfview.h of PDFium numbers it.
_REASONS = {
    3: ("is damaged or cut off: no PDF reader could open it; get the file again", "unparsable"),
    4: ("is encrypted: it asks for a password; remove the protection first", "encrypted"),
    5: ("is encrypted by a method that is not supported; remove the protection first", "encrypted"),
}
_UNKNOWN = ("cannot be opened as a PDF", "unparsable")


def parse_pdf(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads a PDF file; form feeds separate its pages.

    Raises:
        ParseFailed: too large, damaged, encrypted, or without any text.
    """
    content = read_bounded(file, options)
    title, read = _read(file, content, options)
    headed = headed_pages(read)
    pages = headed or [plain_text(lines) for lines in read]
    empty = [number for number, page in enumerate(pages, 1) if not page.strip()]
    if len(empty) == len(pages):
        reason = f"has no text on any of its {len(pages)} pages; run text recognition (OCR) first"
        raise ParseFailed(file.name, reason, "scanned")
    text, warnings = clean("\f".join(pages), keep_pages=True)
    require_text(text, file.name, options)
    if empty:
        warnings += (f"pages {page_ranges(empty)} have no text ({len(empty)} of {len(pages)})",)
    text_format = TextFormat.MARKDOWN if headed else TextFormat.PLAIN
    return ParsedDocument(Document(file.name, title or file.stem, text, text_format, source_uri=file.uri), warnings)


def page_ranges(numbers: Iterable[int]) -> str:
    """Writes increasing page numbers as people do: 3-8, 11."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and number == ranges[-1][-1] + 1:
            ranges[-1] = [ranges[-1][0], number]
        else:
            ranges.append([number])
    return ", ".join("-".join(map(str, span)) for span in ranges)


def _read(file: SourceFile, content: bytes, options: ParseOptions) -> tuple[str, list[list[Line]]]:
    """Returns the title and the lines of each page."""
    with _ONE_AT_A_TIME:
        try:
            pdf = pypdfium2.PdfDocument(content)
        except pypdfium2.PdfiumError as error:
            raise ParseFailed(file.name, *_REASONS.get(error.err_code, _UNKNOWN)) from error
        try:
            title = " ".join(str(pdf.get_metadata_dict().get("Title") or "").split())
            return title, _pages(file, pdf, options)
        except pypdfium2.PdfiumError as error:
            raise ParseFailed(file.name, "is damaged: a page cannot be read; get the file again") from error
        finally:
            pdf.close()


def _pages(file: SourceFile, pdf: pypdfium2.PdfDocument, options: ParseOptions) -> list[list[Line]]:
    pages: list[list[Line]] = []
    characters = 0
    for number in range(len(pdf)):
        page = pdf[number]
        layer = page.get_textpage()
        pages.append(page_lines(layer))
        layer.close()
        page.close()
        characters += sum(len(line.text) + 1 for line in pages[-1])
        if characters > options.max_text_characters:
            reason = f"gives more than {options.max_text_characters} characters; split it"
            raise ParseFailed(file.name, reason, "too_large")
    return pages
