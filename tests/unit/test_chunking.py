"""Chunking by structure."""

from __future__ import annotations

from itertools import pairwise

import pytest

from indexers.chunking import Chunker, ChunkLimits, chunk_id
from indexers.chunking.blocks import find_blocks
from indexers.types import Chunk, Document, TextFormat
from tests.fakes.encoders import PieceCounter

SMALL = ChunkLimits(limit_tokens=40, target_tokens=20, overlap_tokens=5)


def _chunks_of(
    text: str, format: TextFormat = TextFormat.MARKDOWN, title: str = "", limits: ChunkLimits | None = None
) -> tuple[Chunk, ...]:
    return Chunker(PieceCounter(), limits).chunk(Document("d", title, text, format))


def test_repeated_text_gives_increasing_starts() -> None:
    """CHK-01: offsets are carried, not searched for, so equal chunks stand at different places."""
    text = "Check the seal. " * 40
    for text_format in TextFormat:
        chunks = _chunks_of(text, text_format, limits=SMALL)
        starts = [chunk.start for chunk in chunks]
        assert len(chunks) > 5
        assert starts == sorted(set(starts))
        assert all(text[chunk.start : chunk.end] == chunk.text for chunk in chunks)
        assert len({chunk.chunk_id for chunk in chunks}) == len(chunks)


def test_a_hash_sign_in_code_is_no_heading() -> None:
    """CHK-05: comments in fences are code, and nothing around them is lost."""
    text = "# Setup\nRun this FIRST-8:\n```sh\n# not a heading\nmake\n```\n~~~\n# nor this\n~~~\nDone KEEP-9"
    chunks = _chunks_of(text)
    assert {chunk.heading_path for chunk in chunks} == {("Setup",)}
    joined = "\n".join(chunk.text for chunk in chunks)
    assert all(word in joined for word in ("FIRST-8", "make", "KEEP-9"))


def test_an_unclosed_fence_loses_nothing() -> None:
    """The rest of the text belongs to the fence and is still there."""
    chunks = _chunks_of("# A\n```\ncode LOST-1\n\n# still code\nLOST-2")
    assert "LOST-1" in chunks[-1].text
    assert "LOST-2" in chunks[-1].text
    assert chunks[-1].heading_path == ("A",)


@pytest.mark.parametrize(
    "text", ["A" * 20000, "漢" * 3000, "|" + "cell|" * 1800, "x" + "\u0301" * 2000], ids=["word", "han", "row", "marks"]
)
@pytest.mark.parametrize("format", list(TextFormat))
def test_pathological_texts_stay_within_the_limit(text: str, format: TextFormat) -> None:
    """CHK-07: every chunk is within the model's tokens, and every character is in one."""
    chunker = Chunker(PieceCounter())
    document = Document("d", "title", text, format)
    chunks = chunker.chunk(document)
    assert all(PieceCounter().count(chunk.embedding_text) + 2 <= 256 for chunk in chunks)
    covered = {place for chunk in chunks for place in range(chunk.start, chunk.end)}
    assert covered == set(range(len(text)))


def test_a_title_longer_than_a_chunk_leaves_room_for_the_text() -> None:
    """CHK-09: the header is cut to a quarter of the limit, with a warning, and the body is embedded."""
    chunker = Chunker(PieceCounter())
    document = Document("d", "long " * 2000, "Body BODY-3 text.")
    (chunk,) = chunker.chunk(document)
    embedded = chunk.embedding_text
    assert embedded.endswith("\nBody BODY-3 text.")
    assert PieceCounter().count(embedded) <= 64 + 6
    assert "cut to 64 tokens" in chunker.warnings(document)[0]
    assert chunker.warnings(Document("d", "Short title", "Body")) == ()


def test_heading_paths_follow_the_levels() -> None:
    """A heading closes the deeper ones; the path names all that are open."""
    text = "intro\n\n# A\na\n\n### `C` *deep*\nc\n\n## [B](x.md)\nb\n\nD\n=\n\nd"
    assert [(chunk.heading_path, chunk.text.split()[-1]) for chunk in _chunks_of(text)] == [
        ((), "intro"),
        (("A",), "a"),
        (("A", "C *deep*"), "c"),
        (("A", "B"), "b"),
        (("D",), "d"),
    ]


def test_headings_open_the_chunk_below_them() -> None:
    """A heading without text of its own is not a chunk, unless nothing under it follows."""
    chunks = _chunks_of("# A\n## B\n\ntext\n\n# C\n\n# D")
    assert [(chunk.text, chunk.heading_path) for chunk in chunks] == [
        ("# A\n## B\n\ntext", ("A", "B")),
        ("# C", ("C",)),
        ("# D", ("D",)),
    ]


def test_pages_are_counted_by_form_feeds_and_never_share_a_chunk() -> None:
    """The page of a chunk is 1 plus the form feeds before it; without any it is 0."""
    text = "one\f\ftwo two\n\nmore\fthree"
    assert [(chunk.page, chunk.text) for chunk in _chunks_of(text, TextFormat.PLAIN)] == [
        (1, "one"),
        (3, "two two\n\nmore"),
        (4, "three"),
    ]
    assert _chunks_of("one", TextFormat.PLAIN)[0].page == 0


def test_small_paragraphs_share_a_chunk_and_large_ones_overlap() -> None:
    """Blocks are put together up to the target; the parts of a split block repeat a sentence of the one before."""
    assert len(_chunks_of("a b\n\nc d\n\ne f", limits=SMALL)) == 1
    text = " ".join(f"Word{number} here." for number in range(40))
    chunks = _chunks_of(text, limits=SMALL)
    assert all(after.start < before.end for before, after in pairwise(chunks))
    assert all(PieceCounter().count(chunk.text) <= 20 for chunk in chunks)


def test_large_tables_split_between_rows() -> None:
    """Every chunk of a table starts and ends with a whole row, and no row is in two."""
    rows = [f"| part{number} | {number} |" for number in range(30)]
    text = "\n".join(["| Part | Nm |", "|---|---|", *rows])
    chunks = _chunks_of(text, limits=SMALL)
    lines = [line for chunk in chunks for line in chunk.text.splitlines()]
    assert lines == text.splitlines()


def test_carriage_returns_end_lines() -> None:
    """Offsets and headings are right in texts with CR LF and CR line ends."""
    text = "# A\r\n\r\nfirst\r\n\r\n# B\r\rsecond"
    assert [(chunk.heading_path, chunk.text) for chunk in _chunks_of(text)] == [
        (("A",), "# A\r\n\r\nfirst"),
        (("B",), "# B\r\rsecond"),
    ]


def test_link_definitions_and_front_matter_are_kept() -> None:
    """What Markdown does not render is still text of the document."""
    chunks = _chunks_of("---\nowner: KEEP-1\n---\n\nText.\n\n[ref]: http://example.org/KEEP-2\n\nEnd.")
    joined = "\n".join(chunk.text for chunk in chunks)
    assert "KEEP-1" in joined
    assert "KEEP-2" in joined


def test_a_text_without_visible_characters_has_no_chunks() -> None:
    """Nothing is not a chunk."""
    assert _chunks_of(" \n\f\t") == ()


def test_chunk_ids_depend_on_document_content_and_occurrence() -> None:
    """RET-05: ids are canonical lower-case UUIDs, stable, and different for whatever differs."""
    ids = {chunk_id("d", "text", 0), chunk_id("d", "text", 1), chunk_id("e", "text", 0), chunk_id("dt", "ext", 0)}
    assert len(ids) == 4
    assert all(identity == identity.lower() and len(identity) == 36 for identity in ids)
    assert chunk_id("d", "text", 0) == chunk_id("d", "text", 0)


@pytest.mark.parametrize(
    "limits", [{"limit_tokens": 16}, {"target_tokens": 4}, {"overlap_tokens": 300}, {"overlap_tokens": -1}]
)
def test_limits_without_room_for_text_are_refused(limits: dict[str, int]) -> None:
    """Sizes that cannot work fail where they are set."""
    with pytest.raises(ValueError, match="token"):
        ChunkLimits(**limits)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("closing", ["---", "..."])
def test_front_matter_is_no_heading(end: str, closing: str) -> None:
    """YAML at the very start is a plain block of its own; headings below it count as ever, and nothing is lost."""
    lines = ["---", "title: Hello", "tags:", "- one", "", "# a comment", "lang: fr", closing, "text", "# A", "under"]
    text = end.join(lines)
    blocks = find_blocks(text, TextFormat.MARKDOWN)
    assert [(block.heading_path, text[block.start : block.end]) for block in blocks] == [
        ((), end.join(lines[:8])),
        ((), "text"),
        (("A",), end.join(lines[9:])),
    ]


@pytest.mark.parametrize(
    "text",
    ["---\n\nkey: no\n\n# A\nx\n\n---\n", "---\nProse goes on.\n\n# A\nx\n\n---\n", "---\nkey: open\n\n# A\nx\n"],
)
def test_a_rule_at_the_start_is_no_front_matter(text: str) -> None:
    """What follows a mere rule, or is never closed, keeps its headings."""
    assert find_blocks(text, TextFormat.MARKDOWN)[-1].heading_path == ("A",)
