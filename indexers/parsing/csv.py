"""CSV with a header: each row a document. Streamed; the separator is what the header has most of, in TSV a tab."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator

from indexers.errors import ParseFailed
from indexers.parsing.charsets import stream_encoding
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure
from indexers.parsing.rows import failed_row, require_text_field, row_document

_SEPARATORS = ",;\t|"
_OWN_COLUMNS = frozenset({"_id", "id", "title", "text"})


def parse_csv(file: SourceFile, options: ParseOptions) -> Iterator[ParsedDocument | ParseFailure]:
    """Yields what each row gives; empty fields are absent.

    Raises:
        ParseFailed: no column `text`, a column that is there twice, a line or a field that is too long (an unclosed
            quote makes one of many lines).
    """
    encoding, warnings = stream_encoding(file.path)
    # The module's own bound is one for the whole process; ours only ever raises it.
    csv.field_size_limit(max(csv.field_size_limit(), options.max_text_characters + 1))
    lines = _lines(file, encoding, options)
    columns, separator = _header(file, next(lines, ""), options)
    for parsed in _rows(file, (columns, separator), lines, options):
        if isinstance(parsed, ParsedDocument):
            yield ParsedDocument(parsed.document, warnings + parsed.warnings)
            warnings = ()  # said once a file
        else:
            yield parsed


def _header(file: SourceFile, line: str, options: ParseOptions) -> tuple[list[str], str]:
    """Returns the names of the columns, ours in lower case, and the separator."""
    separator = "\t" if file.path.suffix.lower() == ".tsv" else max(_SEPARATORS, key=line.count)
    try:
        names = [name.strip() for name in next(csv.reader([line], delimiter=separator), [])]
    except csv.Error as error:
        raise ParseFailed(file.name, f"has a header that is no CSV: {error}") from error
    columns = [name.lower() if name.lower() in _OWN_COLUMNS else name for name in names]
    columns = [name or f"column {number}" for number, name in enumerate(columns, 1)]
    repeated = min((name for name, count in Counter(columns).items() if count > 1), default=None)
    if repeated is not None:
        raise ParseFailed(file.name, f"has more than one column {repeated[:100]!r}; give each a name of its own")
    require_text_field(file, columns, options)
    return columns, separator


def _rows(
    file: SourceFile, header: tuple[list[str], str], lines: Iterator[str], options: ParseOptions
) -> Iterator[ParsedDocument | ParseFailure]:
    columns, separator = header
    # Strict, or a quote that is never closed would swallow the rest of the file in silence.
    reader = csv.reader(lines, delimiter=separator, strict=True)
    while True:
        number = reader.line_num + 2  # the line that the row starts in, after the header's
        try:
            values = next(reader, None)
        except csv.Error as error:
            if "field limit" in str(error):
                reason = f"row in line {number}: {error}; the rest was not read"
                raise ParseFailed(file.name, reason, "too_large") from error
            yield failed_row(file, number, f"is no CSV: {error}")
            continue
        if values is None:
            return
        if len(values) > len(columns):
            yield failed_row(file, number, f"has {len(values)} fields, the header has {len(columns)}")
        elif any(values):
            row = {name: value for name, value in zip(columns, values, strict=False) if value}
            yield row_document(file, number, row, options)


def _lines(file: SourceFile, encoding: str, options: ParseOptions) -> Iterator[str]:
    """Yields lines with their ends: CR LF, LF or CR."""
    with file.path.open(encoding=encoding, errors="replace", newline="") as opened:
        while line := opened.readline(options.max_row_bytes + 1):
            if len(line) > options.max_row_bytes:
                reason = f"has a line longer than {options.max_row_bytes} characters"
                raise ParseFailed(file.name, reason, "too_large")
            yield line
