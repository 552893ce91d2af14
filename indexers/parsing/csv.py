"""CSV with a header: each row a document. Streamed; the separator is the one that the header has most of."""

from __future__ import annotations

import codecs
import csv
from collections.abc import Iterable, Iterator

from indexers.errors import ParseFailed
from indexers.parsing.charsets import stream_encoding
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure
from indexers.parsing.rows import failed_row, row_document

_SEPARATORS = ",;\t|"
_READ_BYTES = 1 << 16


def parse_csv(file: SourceFile, options: ParseOptions) -> Iterator[ParsedDocument | ParseFailure]:
    """Yields what each row gives; empty fields are absent.

    Raises:
        ParseFailed: no column `text`, a line or a field that is too long (an unclosed quote makes one of many lines).
    """
    encoding, warnings = stream_encoding(file.path)
    # The module's own bound is one for the whole process; ours only ever raises it.
    csv.field_size_limit(max(csv.field_size_limit(), options.max_text_characters + 1))
    lines = _lines(file, encoding, options)
    header_line = next(lines, "")
    separator = max(_SEPARATORS, key=header_line.count)
    names = [name.strip() for name in next(csv.reader([header_line], delimiter=separator), [])]
    columns = [name.lower() if name.lower() in ("_id", "id", "title", "text") else name for name in names]
    if "text" not in columns:
        raise ParseFailed(file.name, f"has no column 'text'; its columns are {', '.join(columns)[:200] or 'none'}")
    for parsed in _rows(file, columns, lines, separator):
        if isinstance(parsed, ParsedDocument):
            yield ParsedDocument(parsed.document, warnings + parsed.warnings)
            warnings = ()  # said once a file
        else:
            yield parsed


def _rows(
    file: SourceFile, columns: list[str], lines: Iterator[str], separator: str
) -> Iterator[ParsedDocument | ParseFailure]:
    # Strict, or a quote that is never closed would swallow the rest of the file in silence.
    reader = csv.reader(lines, delimiter=separator, strict=True)
    while True:
        number = reader.line_num + 2  # the line that the row starts in, after the header's
        try:
            values = next(reader, None)
        except csv.Error as error:
            if "field limit" in str(error):
                raise ParseFailed(file.name, f"row in line {number}: {error}; the rest was not read") from error
            yield failed_row(file, number, f"is no CSV: {error}")
            continue
        if values is None:
            return
        if len(values) > len(columns):
            yield failed_row(file, number, f"has {len(values)} fields, the header has {len(columns)}")
        elif any(values):
            row = {name: value for name, value in zip(columns, values, strict=False) if value}
            yield row_document(file, number, row)


def _lines(file: SourceFile, encoding: str, options: ParseOptions) -> Iterator[str]:
    """Yields decoded lines with their ends."""
    decoder = codecs.getincrementaldecoder(encoding)(errors="replace")
    waiting: list[str] = []
    length = 0
    with file.path.open("rb") as opened:
        for last, block in _blocks(iter(lambda: opened.read(_READ_BYTES), b"")):
            *lines, rest = decoder.decode(block, last).split("\n")
            for line in lines:
                yield "".join([*waiting, line, "\n"])
                waiting, length = [], 0
            waiting.append(rest)
            length += len(rest)
            if length > options.max_row_bytes:
                raise ParseFailed(file.name, f"has a line longer than {options.max_row_bytes} characters")
    if length:
        yield "".join(waiting)


def _blocks(blocks: Iterable[bytes]) -> Iterator[tuple[bool, bytes]]:
    for block in blocks:
        yield False, block
    yield True, b""
