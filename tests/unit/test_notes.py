"""Notes: text that is searched along with a span of a document, but never shown."""

from __future__ import annotations

from dataclasses import replace

import pytest

from indexers.chunking import Chunker, ChunkLimits
from indexers.documents import check_document, document_fingerprint
from indexers.errors import InvalidDocument
from indexers.types import Document, Note, TextFormat
from tests.fakes.counters import WordCounter

TEXT = "# One\n\n" + "pumps move water " * 30 + "\n\n# Two\n\n" + "valves stop water " * 30
LIMITS = ChunkLimits(limit_tokens=64, target_tokens=40, overlap_tokens=8)


def _chunks(*notes: Note):
    document = Document("d", "Title", TEXT, TextFormat.MARKDOWN, notes=notes)
    return Chunker(WordCounter(), LIMITS).chunk(document)


def test_note_goes_with_the_chunk_in_which_its_span_begins() -> None:
    """A note is embedded with one chunk, after its text, and changes neither text nor offsets."""
    at = TEXT.index("valves")
    chunks = _chunks(Note(at, at + 10, "what closes a pipe"))
    noted = [chunk for chunk in chunks if chunk.notes]
    assert len(noted) == 1
    assert noted[0].start <= at < noted[0].end
    assert noted[0].embedding_text.endswith("\nwhat closes a pipe")
    assert all(TEXT[chunk.start : chunk.end] == chunk.text for chunk in chunks)


def test_notes_never_push_a_chunk_above_the_limit() -> None:
    """However long notes are, what is embedded fits, and some of the note is in it."""
    chunks = _chunks(*(Note(at, at, "word " * 100) for at in range(0, len(TEXT), 50)))
    counter = WordCounter()
    assert all(counter.count(chunk.embedding_text) + LIMITS.added_tokens <= LIMITS.limit_tokens for chunk in chunks)
    assert all(chunk.notes for chunk in chunks)


def test_note_changes_the_chunk_id_and_the_fingerprint() -> None:
    """What is embedded differs, so it is another chunk, and the document counts as changed."""
    plain, noted = _chunks(), _chunks(Note(0, 5, "a summary"))
    assert {chunk.chunk_id for chunk in plain}.isdisjoint({noted[0].chunk_id})
    document = Document("d", "", TEXT)
    prints = {
        document_fingerprint(one, "s")
        for one in (document, replace(document, notes=(Note(0, 5, "a"),)), replace(document, owner="job"))
    }
    assert len(prints) == 3


@pytest.mark.parametrize(
    ("note", "field"),
    [
        (Note(5, 3, "x"), "notes[0]"),
        (Note(0, 10_000_000, "x"), "notes[0]"),
        (Note(0, 1, "x" * 10_001), "notes[0].text"),
        (Note(0, 1, "\ud800"), "notes[0].text"),
    ],
)
def test_note_outside_its_bounds_is_refused(note: Note, field: str) -> None:
    """Spans outside the text and overlong or invalid texts are named."""
    with pytest.raises(InvalidDocument) as refused:
        check_document(Document("d", "", TEXT, notes=(note,)), {})
    assert refused.value.field == field


def test_owner_must_be_a_name() -> None:
    """An owner that no job can have is refused."""
    with pytest.raises(InvalidDocument) as refused:
        check_document(Document("d", "", TEXT, owner="No Name"), {})
    assert refused.value.field == "owner"
