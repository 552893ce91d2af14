"""JSON files: an array of objects is rows, as JSON lines are; one object is one document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from indexers.errors import ParseFailed
from indexers.parsing.charsets import decode
from indexers.parsing.options import ParseOptions, SourceFile, clean, read_bounded, require_text
from indexers.parsing.parsed import ParsedDocument, ParseFailure
from indexers.parsing.rows import failed_row, has_text, require_text_field, row_document
from indexers.types import Document

_MAX_DEPTH = 100
_LOOKED_AT = 100  # rows whose fields are named when none holds text


def parse_json(file: SourceFile, options: ParseOptions) -> Iterator[ParsedDocument | ParseFailure]:
    """Yields a document for each object of an array, or one of the whole file.

    Raises:
        ParseFailed: too large, no JSON, or without text.
    """
    source, warnings = decode(read_bounded(file, options))
    try:
        content = json.loads(source)
    except (ValueError, RecursionError) as error:
        raise ParseFailed(file.name, f"is no JSON: {str(error)[:200]}") from error
    if isinstance(content, list) and any(isinstance(row, dict) for row in content):
        yield from _rows(file, content, options, warnings)
    elif isinstance(content, dict) and has_text(content, options):
        yield from _rows(file, [content], options, warnings)
    else:
        text, cleaned = clean("\n".join(_lines(content)))
        require_text(text, file.name, options)
        yield ParsedDocument(Document(file.name, file.stem, text, source_uri=file.uri), warnings + cleaned)


def _rows(
    file: SourceFile, content: Sequence[object], options: ParseOptions, warnings: tuple[str, ...]
) -> Iterator[ParsedDocument | ParseFailure]:
    rows = [row for row in content if isinstance(row, dict)]
    if not any(has_text(row, options) for row in rows):
        names = dict.fromkeys(str(name) for row in rows[:_LOOKED_AT] for name in row)
        require_text_field(file, names, options, "field")
    for number, row in enumerate(content, 1):
        if not isinstance(row, dict):
            yield failed_row(file, number, "is no JSON object; each entry must be one")
            continue
        parsed = row_document(file, number, row, options)
        if isinstance(parsed, ParsedDocument):
            parsed = ParsedDocument(parsed.document, warnings + parsed.warnings)
            warnings = ()  # said once a file
        yield parsed


def _lines(content: object) -> Iterator[str]:
    """Yields a line for each value: the way to it, and what it is."""
    waiting: list[tuple[tuple[str, ...], object]] = [((), content)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, Mapping) and len(path) < _MAX_DEPTH:
            waiting += [((*path, str(key)), one) for key, one in reversed(list(value.items()))]
        elif isinstance(value, list) and len(path) < _MAX_DEPTH:
            waiting += [((*path, str(at)), value[at]) for at in reversed(range(len(value)))]
        elif value is not None and value != "":
            yield f"{'.'.join(path)}: {value}" if path else str(value)
