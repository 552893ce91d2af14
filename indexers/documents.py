"""What a document must be to be indexed, and the fingerprint that tells whether it has changed."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace

from indexers.errors import InvalidDocument, InvalidInput
from indexers.notes import check_notes, notes_to_json
from indexers.schema import coerce_metadata, metadata_to_json
from indexers.spec_part import NAME
from indexers.types import Document, FieldType

MAX_ID_CHARACTERS = 512
MAX_TITLE_CHARACTERS = 10_000
MAX_URI_CHARACTERS = 4_096
MAX_TEXT_CHARACTERS = 10_000_000


def check_document(document: Document, fields: Mapping[str, FieldType]) -> Document:
    """Returns the document with its metadata coerced to the declared fields.

    Raises:
        InvalidDocument: an empty or overlong part, no visible text, or characters that cannot be stored.
        TypeMismatch: a metadata value is not of its declared type.
    """
    _check_id(document.document_id)
    _check_text("title", document.title, MAX_TITLE_CHARACTERS)
    _check_text("source_uri", document.source_uri, MAX_URI_CHARACTERS)
    _check_text("text", document.text, MAX_TEXT_CHARACTERS)
    if document.owner and not re.fullmatch(NAME, document.owner):
        raise _invalid("owner", "the name of a job: 1 to 63 of a-z 0-9 _ -, starting with a letter or digit")
    check_notes(document)
    if not document.text or document.text.isspace():
        raise _invalid("text", "at least one visible character")
    return replace(document, metadata=coerce_metadata(document.metadata, fields))


def check_documents(documents: Sequence[Document], fields: Mapping[str, FieldType]) -> list[Document]:
    """Returns all documents as `check_document` does; errors name the position, as in `documents[3].text`.

    Raises:
        InvalidDocument, TypeMismatch: see `check_document`; also when two documents have the same id.
    """
    checked: list[Document] = []
    positions: dict[str, int] = {}
    for position, document in enumerate(documents):
        try:
            checked.append(check_document(document, fields))
        except InvalidInput as error:
            place = f"documents[{position}]"
            raise type(error)(f"{place}.{error.field}", error.bound, f"{place}: {error}") from None
        first = positions.setdefault(document.document_id, position)
        if first != position:
            message = f"documents[{position}] has the same id as documents[{first}]; send each document once"
            raise InvalidDocument(f"documents[{position}].id", "unique within one call", message)
    return checked


def document_fingerprint(document: Document, shaping: str) -> str:
    """Returns a hash of all that shapes a document's stored form, its chunks and its vectors; not of its source URI.

    `shaping` names what does so besides the document: the chunker, the models, the size of a token's code.
    """
    digest = hashlib.blake2b(digest_size=16)
    metadata = metadata_to_json(dict(sorted(document.metadata.items())))
    parts = [document.title, document.text, document.format.value, metadata, shaping]
    if document.owner or document.notes:
        parts += [document.owner, notes_to_json(document.notes)]
    for part in parts:
        encoded = part.encode()
        digest.update(len(encoded).to_bytes(8, "little"))
        digest.update(encoded)
    return digest.hexdigest()


def _check_id(document_id: str) -> None:
    if not 0 < len(document_id) <= MAX_ID_CHARACTERS:
        raise _invalid("id", f"1 to {MAX_ID_CHARACTERS} characters")
    if any(unicodedata.category(character) in ("Cc", "Cs") for character in document_id):
        raise _invalid("id", "no control characters")


def _check_text(field: str, text: str, limit: int) -> None:
    if len(text) > limit:
        raise _invalid(field, f"at most {limit} characters")
    if "\x00" in text:
        raise _invalid(field, "no NUL characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _invalid(field, "valid Unicode without lone surrogates") from None


def _invalid(field: str, bound: str) -> InvalidDocument:
    return InvalidDocument(field, bound, f"{field} must have {bound}; change it or leave the document out")
