"""What holds of the chunks of any text."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from indexers.chunking import Chunker, ChunkLimits
from indexers.sentences import sentence_spans
from indexers.types import Document, TextFormat
from tests.fakes.encoders import PieceCounter

MARKUP = [
    "# ",
    "## ",
    "```",
    "~~~",
    "- ",
    "1. ",
    "> ",
    "|",
    "|---|---|",
    "    ",
    "[a]: b",
    "===",
    "---",
    "`",
    "<div>",
    "<!--",
]
SPACE = ["\n", "\n\n", "\r\n", "\r", "\f", "\t", ". "]
WORDS = ["word", "e.g. ", "漢字。", "\u0301", "😀", "\u200b", "\x00", "a" * 150]
PIECES = st.sampled_from([*MARKUP, *SPACE, *WORDS])
TEXTS = st.one_of(st.lists(PIECES, max_size=80).map("".join), st.text(max_size=200))


@settings(max_examples=150, deadline=None)
@given(text=TEXTS, title=st.text(max_size=80), format=st.sampled_from(TextFormat), limit=st.integers(32, 80))
def test_chunks_hold_all_text_in_order_within_the_limit(text: str, title: str, format: TextFormat, limit: int) -> None:
    """Offsets are exact, starts increase, no visible character is lost, and no chunk is above the limit."""
    chunker = Chunker(PieceCounter(), ChunkLimits(limit_tokens=limit, target_tokens=12, overlap_tokens=4))
    chunks = chunker.chunk(Document("d", title, text, format))
    assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
    assert all(chunk.text == chunk.text.rstrip() != "" for chunk in chunks)
    assert all(before.start < after.start for before, after in pairwise(chunks))
    assert [chunk.ordinal for chunk in chunks] == list(range(len(chunks)))
    assert all(PieceCounter().count(chunk.embedding_text) + 2 <= limit for chunk in chunks)
    covered = {place for chunk in chunks for place in range(chunk.start, chunk.end)}
    assert all(place in covered or text[place].isspace() for place in range(len(text)))
    pages = [1 + text.count("\f", 0, chunk.start) if "\f" in text else 0 for chunk in chunks]
    assert [chunk.page for chunk in chunks] == pages
    assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)


@settings(max_examples=150, deadline=None)
@given(text=TEXTS)
def test_sentences_hold_all_text_in_order(text: str) -> None:
    """Spans are trimmed, do not overlap, and only space is left between them."""
    position = 0
    for start, end in sentence_spans(text):
        assert not text[position:start].strip()
        assert text[start:end] == text[start:end].strip() != ""
        position = end
    assert not text[position:].strip()
