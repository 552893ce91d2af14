"""JSON lines: each line an object, each object a document. Streamed, and a bad line fails by itself."""

from __future__ import annotations

import json
from collections.abc import Iterator

from indexers.parsing.charsets import decode, marked_encoding
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure
from indexers.parsing.rows import bounded_lines, failed_row, row_document


def parse_jsonl(file: SourceFile, options: ParseOptions) -> Iterator[ParsedDocument | ParseFailure]:
    """Yields what each line gives; empty lines give nothing.

    Raises:
        ParseFailed: a line is too long.
    """
    with file.path.open("rb") as opened:
        if marked_encoding(opened.read(4)) in ("utf-16", "utf-32"):
            reason = "is UTF-16 or UTF-32, JSON lines must be UTF-8; convert it"
            yield ParseFailure(file.name, file.uri, reason, "bad_encoding")
            return
        opened.seek(0)
        for number, line in enumerate(bounded_lines(opened, file, options), 1):
            if line.strip(b" \t\r\n\xef\xbb\xbf"):
                yield _parse_line(file, number, line, options)


def _parse_line(file: SourceFile, number: int, line: bytes, options: ParseOptions) -> ParsedDocument | ParseFailure:
    text, warnings = decode(line)
    try:
        row = json.loads(text)
    except json.JSONDecodeError as error:
        return failed_row(file, number, f"is no JSON: {error.msg} at character {error.pos + 1}")
    except (RecursionError, ValueError):  # nested too deep, or a number of thousands of digits
        return failed_row(file, number, "is JSON that nests too deep or holds too long a number")
    if not isinstance(row, dict):
        return failed_row(file, number, "is no JSON object; each line must be one")
    parsed = row_document(file, number, row, options)
    if isinstance(parsed, ParsedDocument):
        return ParsedDocument(parsed.document, warnings + parsed.warnings)
    return parsed
