"""E-mail (EML, MBOX): a document a message, its subject as title, who wrote to whom and when as metadata.

The plain part is read, else the HTML one. Attachments are named in a warning and not read.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC
from email import message_from_bytes, policy
from email.errors import MessageError
from email.message import EmailMessage
from email.utils import parsedate_to_datetime

from indexers.errors import ParseFailed
from indexers.parsing.html import page_text
from indexers.parsing.options import ParseOptions, SourceFile, clean, read_bounded, require_text
from indexers.parsing.parsed import ParsedDocument, ParseFailure
from indexers.parsing.rows import bounded_lines, failed_row
from indexers.types import Document, Metadata, Scalar, TextFormat

_START = b"From "
_NAMED = 20  # attachments
_LONGEST_ID = 200


def parse_eml(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads one message.

    Raises:
        ParseFailed: too large, no message, encrypted, or without text.
    """
    return _document(file, read_bounded(file, options), file.name, options)


def parse_mbox(file: SourceFile, options: ParseOptions) -> Iterator[ParsedDocument | ParseFailure]:
    """Yields the messages of a mailbox, named by their Message-ID, so that removing one leaves the others as they are.

    One that cannot be read fails by itself. One without an id, or with that of an earlier one, goes by its place.
    """
    seen: set[str] = set()
    for number, content in enumerate(_messages(file, options), 1):
        place = f"{file.name}#{number}"
        try:
            if content is None:
                reason = f"is a message larger than {options.max_row_bytes} bytes"
                raise ParseFailed(file.name, reason, "too_large")
            parsed = _document(file, content, place, options)
        except ParseFailed as failed:
            yield failed_row(file, number, failed.reason, failed.kind)
            continue
        message_id = str(parsed.document.metadata.get("message_id", "")).strip("<>")
        if 0 < len(message_id) <= _LONGEST_ID and message_id not in seen:
            seen.add(message_id)
            identity = f"{file.name}#{message_id}"
            parsed = replace(parsed, document=replace(parsed.document, document_id=identity))
        yield parsed


def _messages(file: SourceFile, options: ParseOptions) -> Iterator[bytes | None]:
    """Yields the messages of a mailbox; None for one that is too large."""
    lines: list[bytes] = []
    size, blank = 0, True
    with file.path.open("rb") as opened:
        for line in bounded_lines(opened, file, options):
            if blank and line.startswith(_START):
                if lines:
                    yield b"".join(lines) if size <= options.max_row_bytes else None
                lines, size = [], 0
            else:
                size += len(line)
                if size <= options.max_row_bytes:
                    quoted = line.startswith(b">") and line.lstrip(b">").startswith(_START)
                    lines.append(line[1:] if quoted else line)
            blank = not line.strip()
    if lines:
        yield b"".join(lines) if size <= options.max_row_bytes else None


def _document(file: SourceFile, content: bytes, identity: str, options: ParseOptions) -> ParsedDocument:
    try:
        message = message_from_bytes(content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        title, metadata = _header(message, "subject"), _metadata(message)
        text, text_format, warnings = _text(file, message)
    except (MessageError, LookupError, ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ParseFailed(file.name, f"is no message that can be read: {str(error)[:200]}") from error
    if not message.keys():
        raise ParseFailed(file.name, "is no e-mail: it has no header", "wrong_type")
    text, cleaned = clean(text)
    require_text(text, file.name, options)
    uri = file.uri if identity == file.name else f"{file.uri}#{identity.rpartition('#')[2]}"
    title = " ".join(clean(title)[0].split()) or file.stem
    document = Document(identity, title, text, text_format, metadata=metadata, source_uri=uri)
    return ParsedDocument(document, (*warnings, *cleaned))


def _text(file: SourceFile, message: EmailMessage) -> tuple[str, TextFormat, tuple[str, ...]]:
    body = message.get_body(("plain", "html"))
    if body is None:
        encrypted = "encrypted" in message.get_content_type() or "pkcs7" in message.get_content_type()
        reason = "is encrypted" if encrypted else "holds no text"
        raise ParseFailed(file.name, reason, "encrypted" if encrypted else "no_text")
    text, text_format = str(body.get_content()), TextFormat.PLAIN
    if body.get_content_subtype() == "html":
        text, text_format = page_text(clean(text)[0], file.name), TextFormat.MARKDOWN
    names = [one.get_filename() or one.get_content_type() for one in message.iter_attachments()]
    if not names:
        return text, text_format, ()
    return text, text_format, (f"{len(names)} attachments were not read: {', '.join(map(str, names[:_NAMED]))}",)


def _metadata(message: EmailMessage) -> Metadata:
    found: dict[str, Scalar | tuple[Scalar, ...]] = {}
    for name, header in (("from", "from"), ("to", "to"), ("cc", "cc"), ("message_id", "message-id")):
        if value := clean(_header(message, header))[0].strip()[:1_000]:
            found[name] = value
    try:
        moment = parsedate_to_datetime(_header(message, "date"))
        found["date"] = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, TypeError, IndexError, OverflowError):
        pass  # no date, or one that is none
    return found


def _header(message: EmailMessage, name: str) -> str:
    try:
        return str(message.get(name, ""))
    except (AttributeError, IndexError, TypeError, ValueError):  # the library's own, on odd addresses
        return ""
