"""What is said in the frames: a file to parse one way, its documents and failures the other.

What comes back is checked field by field: whoever wrote the file may have taken over the process that read it, and
then all that is left to it is to lie about the text of this one file.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from pathlib import Path

from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SkippedFile, SourceItem
from indexers.sandbox.frames import Json
from indexers.types import Document, Metadata, Scalar, TextFormat

_ROOM_BYTES = 1024 * 1024


def pack_request(file: SourceFile, options: ParseOptions) -> dict[str, Json]:
    """Says which file to parse, and how."""
    said = {**asdict(options), "row_format": options.row_format.value}
    return {"path": str(file.path), "name": file.name, "uri": file.uri, "options": said}


def unpack_request(message: Mapping[str, Json]) -> tuple[SourceFile, ParseOptions]:
    """Returns what `pack_request` was given."""
    options = message["options"]
    assert isinstance(options, dict)
    fields = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    row_format = TextFormat(str(fields.pop("row_format")))
    file = SourceFile(Path(str(message["path"])), str(message["name"]), str(message["uri"]))
    return file, ParseOptions(**fields, row_format=row_format)  # type: ignore[arg-type]  # as the parent had them


def pack_item(item: SourceItem) -> dict[str, Json]:
    """Says what came out of a file."""
    if isinstance(item, ParseFailure):
        return {"failed": item.path, "reason": item.reason, "kind": item.kind}
    if isinstance(item, SkippedFile):
        return {"skipped": item.path, "reason": item.reason}
    document = item.document
    return {
        "id": document.document_id,
        "title": document.title,
        "text": document.text,
        "format": document.format.value,
        "metadata": {key: _pack_value(value) for key, value in document.metadata.items()},
        "uri": document.source_uri,
        "warnings": list(item.warnings),
    }


def unpack_item(message: Mapping[str, Json], file: SourceFile) -> SourceItem:
    """Returns an item that is about this file; its size is bounded by that of the frame it came in.

    Raises:
        ValueError: it is not.
    """
    if "failed" in message:
        path, reason, kind = (_string(message, key) for key in ("failed", "reason", "kind"))
        _require(path.startswith(file.name) and kind.isascii() and len(kind) <= 40, "failed")
        return ParseFailure(path, file.uri, reason, kind)
    if "skipped" in message:
        return SkippedFile(file.name, _string(message, "reason"))
    text = _string(message, "text")
    uri = _string(message, "uri")
    _require(uri.startswith(file.uri), "uri")
    identity, title = _string(message, "id"), _string(message, "title")
    text_format = TextFormat(_string(message, "format"))
    document = Document(identity, title, text, text_format, _metadata(message.get("metadata")), uri)
    return ParsedDocument(document, _warnings(message.get("warnings")))


def longest_answer_bytes(options: ParseOptions) -> int:
    """Returns the most bytes that an honest answer takes; JSON writes a control character in six."""
    return 6 * (options.max_text_characters + options.max_row_bytes) + _ROOM_BYTES


def _pack_value(value: Scalar | tuple[Scalar, ...]) -> Json:
    if isinstance(value, tuple):
        return [_pack_value(one) for one in value]
    return {"at": value.isoformat()} if isinstance(value, datetime) else value


def _metadata(found: Json) -> Metadata:
    _require(isinstance(found, dict), "metadata")
    assert isinstance(found, dict)
    return {_sound(key): _value(value) for key, value in found.items()}


def _value(value: Json) -> Scalar | tuple[Scalar, ...]:
    return tuple(_scalar(one) for one in value) if isinstance(value, list) else _scalar(value)


def _scalar(value: Json) -> Scalar:
    if isinstance(value, str):
        return _sound(value)
    if isinstance(value, dict):
        at = datetime.fromisoformat(_string(value, "at"))
        _require(at.tzinfo is not None, "at")
        return at
    _require(isinstance(value, int | float), "metadata")
    assert isinstance(value, int | float)
    return value


def _warnings(found: Json) -> tuple[str, ...]:
    _require(isinstance(found, list), "warnings")
    assert isinstance(found, list)
    return tuple(_string({"warning": one}, "warning") for one in found)


def _string(message: Mapping[str, Json], key: str) -> str:
    value = message.get(key)
    _require(isinstance(value, str), key)
    assert isinstance(value, str)
    return _sound(value)


def _sound(text: str) -> str:
    """Returns a string that can be encoded. UnicodeEncodeError is a ValueError."""
    if not text.isascii():
        text.encode()
    return text


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"an answer whose {what!r} is not sound")
