"""Notes of a document: bounds, and how they are stored."""

from __future__ import annotations

import json
from collections.abc import Sequence

from indexers.errors import InvalidDocument
from indexers.types import Document, Note

MAX_NOTES = 10_000
MAX_NOTE_CHARACTERS = 10_000


def check_notes(document: Document) -> None:
    """Refuses notes that stand nowhere in the text, are too many or too long.

    Raises:
        InvalidDocument: names the note and the bound.
    """
    if len(document.notes) > MAX_NOTES:
        raise _invalid("notes", f"at most {MAX_NOTES} notes")
    for position, note in enumerate(document.notes):
        field = f"notes[{position}]"
        if not 0 <= note.start <= note.end <= len(document.text):
            raise _invalid(field, "a span of the text, start before end")
        if len(note.text) > MAX_NOTE_CHARACTERS or "\x00" in note.text or not _is_unicode(note.text):
            raise _invalid(f"{field}.text", f"at most {MAX_NOTE_CHARACTERS} valid characters")


def notes_to_json(notes: Sequence[Note]) -> str:
    """Writes notes for a store."""
    return json.dumps([[note.start, note.end, note.text] for note in notes], ensure_ascii=False)


def notes_from_json(text: str) -> tuple[Note, ...]:
    """Reads what `notes_to_json` wrote."""
    return tuple(Note(start, end, noted) for start, end, noted in json.loads(text))


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _invalid(field: str, bound: str) -> InvalidDocument:
    return InvalidDocument(field, bound, f"{field} must be {bound}; change it or leave it out")
