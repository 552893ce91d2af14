"""What the formats of many documents share: a row's fields become a document, the rest becomes its metadata."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import BinaryIO

from indexers.errors import ParseFailed
from indexers.parsing.options import ParseOptions, SourceFile, clean
from indexers.parsing.parsed import ParsedDocument, ParseFailure
from indexers.types import Document, Scalar

_ID_FIELDS = ("_id", "id")


def row_document(
    file: SourceFile, number: int, row: Mapping[str, object], options: ParseOptions
) -> ParsedDocument | ParseFailure:
    """Makes a document of a row: `_id` or `id`, `title`, `text`; other fields and those in `metadata` are its metadata.

    The options may name other fields. A row without an id is named after its place, `number`, the line it is in or
    starts in.
    """
    parts = [clean(_text(row.get(name))) for name in options.text_fields]
    text, warnings = "\n\n".join(part for part, _ in parts if part.strip()), parts[0][1]
    if not text:
        named = ", ".join(f"'{name}'" for name in options.text_fields)
        return failed_row(file, number, f"has no text in its field {named}", "no_text")
    ids = _ID_FIELDS if options.id_field == "id" else (options.id_field,)
    own = {*ids, options.title_field, *options.text_fields, "metadata"}
    fields = {key: value for key, value in row.items() if key not in own}
    nested = row.get("metadata")
    if isinstance(nested, Mapping):
        fields.update(nested)
    elif nested is not None:
        fields["metadata"] = nested
    metadata, refused = _metadata(fields)
    if refused:
        warnings += (f"fields that are no scalars or lists of them were left out: {', '.join(refused)}",)
    identity = next((clean(_text(row[key]))[0] for key in ids if _text(row.get(key))), f"{file.name}#{number}")
    title = " ".join(clean(_text(row.get(options.title_field)))[0].split())
    uri = f"{file.uri}#{number}"
    document = Document(identity, title, text, options.row_format, metadata, source_uri=uri)
    return ParsedDocument(document, warnings)


def has_text(row: Mapping[str, object], options: ParseOptions) -> bool:
    """Tells whether a row has text in one of the fields that are read."""
    return any(_text(row.get(name)).strip() for name in options.text_fields)


def require_text_field(file: SourceFile, names: Collection[str], options: ParseOptions, kind: str = "column") -> None:
    """Raises: ParseFailed: none of the fields that hold text is among the names of a file's fields."""
    if not any(name in names for name in options.text_fields):
        wanted = ", ".join(f"'{name}'" for name in options.text_fields)
        raise ParseFailed(file.name, f"has no {kind} {wanted}; its {kind}s are {', '.join(names)[:200] or 'none'}")


def failed_row(file: SourceFile, number: int, reason: str, kind: str = "unparsable") -> ParseFailure:
    """Says what is wrong with one row."""
    return ParseFailure(f"{file.name}:{number}", file.uri, reason, kind)


def bounded_lines(opened: BinaryIO, file: SourceFile, options: ParseOptions) -> Iterator[bytes]:
    """Yields the lines of a file with their ends.

    Raises:
        ParseFailed: a line is longer than a row may be.
    """
    while line := opened.readline(options.max_row_bytes + 1):
        if len(line) > options.max_row_bytes:
            raise ParseFailed(file.name, f"has a line longer than {options.max_row_bytes} bytes", "too_large")
        yield line


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else ""


def _metadata(fields: Mapping[str, object]) -> tuple[dict[str, Scalar | tuple[Scalar, ...]], list[str]]:
    metadata: dict[str, Scalar | tuple[Scalar, ...]] = {}
    refused: list[str] = []
    for key, value in fields.items():
        name = clean(str(key))[0]
        if isinstance(value, list) and all(isinstance(one, str | int | float | bool) for one in value):
            metadata[name] = tuple(_scalar(one) for one in value)
        elif isinstance(value, str | int | float | bool):
            metadata[name] = _scalar(value)
        elif value is not None:
            refused.append(name)
    return metadata, refused


def _scalar(value: Scalar) -> Scalar:
    return clean(value)[0] if isinstance(value, str) else value
