"""E-mail (EML, MBOX): a document a message, its subject as title, who wrote to whom and when as metadata.

The plain part is read, else the HTML one. Attachments are named in a warning and not read.
"""

from __future__ import annotations

from collections.abc import Iterator
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


def parse_eml(file: SourceFile, options: ParseOptions) -> ParsedDocument:
    """Reads one message.

    Raises:
        ParseFailed: too large, no message, encrypted, or without text.
    """
    return _document(file, read_bounded(file, options), file.name, options)


def parse_mbox(file: SourceFile, options: ParseOptions) -> Iterator[ParsedDocument | ParseFailure]:
    """Yields the messages of a mailbox; one that cannot be read fails by itself."""
    seen: dict[str, int] = {}
    for number, content in enumerate(_messages(file, options), 1):
        try:
            parsed = _document(file, content, f"{file.name}#{number}", options)
        except ParseFailed as failed:
            yield failed_row(file, number, failed.reason, failed.kind)
            continue
        seen[parsed.document.document_id] = number
        yield parsed


def _messages(file: SourceFile, options: ParseOptions) -> Iterator[bytes]:
    lines: list[bytes] = []
    size, blank = 0, True
    with file.path.open("rb") as opened:
        for line in bounded_lines(opened, file, options):
            if blank and line.startswith(_START):
                if lines:
                    yield b"".join(lines)
                lines, size = [], 0
            elif size <= options.max_row_bytes:
                lines.append(line[1:] if line.lstrip(b">").startswith(_START) and line.startswith(b">") else line)
                size += len(line)
            blank = not line.strip()
    if lines:
        yield b"".join(lines)


def _document(file: SourceFile, content: bytes, identity: str, options: ParseOptions) -> ParsedDocument:
    try:
        message = message_from_bytes(content, policy=policy.default)
        assert isinstance(message, EmailMessage)
        title, metadata = _header(message, "subject"), _metadata(message)
        text, warnings = _text(file, message)
    except (MessageError, LookupError, ValueError, AttributeError, TypeError, RecursionError) as error:
        raise ParseFailed(file.name, f"is no message that can be read: {str(error)[:200]}") from error
    if not message.keys():
        raise ParseFailed(file.name, "is no e-mail: it has no header", "wrong_type")
    text, cleaned = clean(text)
    require_text(text, file.name, options)
    uri = file.uri if identity == file.name else f"{file.uri}#{identity.rpartition('#')[2]}"
    title = " ".join(clean(title)[0].split()) or file.stem
    document = Document(identity, title, text, TextFormat.MARKDOWN, metadata=metadata, source_uri=uri)
    return ParsedDocument(document, (*warnings, *cleaned))


def _text(file: SourceFile, message: EmailMessage) -> tuple[str, tuple[str, ...]]:
    body = message.get_body(("plain", "html"))
    if body is None:
        encrypted = "encrypted" in message.get_content_type() or "pkcs7" in message.get_content_type()
        reason = "is encrypted" if encrypted else "holds no text"
        raise ParseFailed(file.name, reason, "encrypted" if encrypted else "no_text")
    text = str(body.get_content())
    if body.get_content_subtype() == "html":
        text = page_text(clean(text)[0], file.name)
    names = [one.get_filename() or one.get_content_type() for one in message.iter_attachments()]
    if not names:
        return text, ()
    return text, (f"{len(names)} attachments were not read: {', '.join(map(str, names[:_NAMED]))}",)


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
