"""Passages widened to what stands around them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from indexers.chunking import Chunker, ChunkLimits
from indexers.types import Chunk, Document, EncodedDocument, Passage, TextFormat
from retrieval.assembly.expanding import Outline, expanded
from retrieval.settings import Settings
from retrieval.stages.expand import expand
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Expansion, Hit, ScoreParts
from tests.fakes.counters import WordCounter
from tests.fakes.memory_index import MemoryIndex

COUNTER = WordCounter()
TEXT = """# Pumps

One pump is here. It moves water. It is blue.

Two pumps are there. They move oil. They are red.

Three pumps are gone.

# Valves

A valve stops water. It is green.
"""


def _passage(document: Document, chunk: Chunk) -> Passage:
    return Passage(
        chunk.chunk_id,
        document.document_id,
        "",
        chunk.heading_path,
        chunk.text,
        chunk.start,
        chunk.end,
        chunk.ordinal,
        0,
        {},
    )


def _at(text: str, found: str) -> Passage:
    start = text.index(found)
    return Passage("c", "d", "", ("Pumps",), found, start, start + len(found), 1, 0, {}, token_count=7)


def _wide(found: str, expansion: Expansion) -> str:
    document = Document("d", "", TEXT, TextFormat.MARKDOWN)
    return expanded(_at(TEXT, found), Outline.of(document), expansion, COUNTER).text


def test_window_adds_sentences_on_each_side() -> None:
    """So many sentences before and behind are added, as they stand in the document."""
    assert _wide("They move oil.", Expansion(1, 100)) == "Two pumps are there. They move oil. They are red."
    wide = _wide("They move oil.", Expansion(2, 100))
    assert wide.startswith("It is blue.")
    assert wide.endswith("Three pumps are gone.")


def test_section_is_added_whole_when_it_fits() -> None:
    """All that stands under the same headings is added, and nothing of the next section."""
    wide = _wide("They move oil.", Expansion(0, 100))
    assert wide.startswith("# Pumps")
    assert wide.endswith("Three pumps are gone.")


def test_window_stays_in_its_section() -> None:
    """What stands under another heading is never added, however many sentences are asked for."""
    assert _wide("It is green.", Expansion(50, 500)).startswith("# Valves")


def test_section_that_is_too_long_is_added_in_part() -> None:
    """Neighbouring blocks are added while they fit, those behind first."""
    wide = _wide("Two pumps are there. They move oil. They are red.", Expansion(0, 20))
    assert wide == "Two pumps are there. They move oil. They are red.\n\nThree pumps are gone."


def test_passage_of_a_changed_document_stays_as_it_was() -> None:
    """Where the document no longer says the same, nothing is added."""
    passage = _at(TEXT, "They move oil.")
    changed = Document("d", "", TEXT.replace("oil", "air"), TextFormat.MARKDOWN)
    assert expanded(passage, Outline.of(changed), Expansion(2, 100), COUNTER) is passage


@pytest.mark.parametrize("sentences", [0, 1, 5])
@given(
    words=st.lists(
        st.sampled_from(["word", "a.", "\n\n", "# Head\n\n", "b!", "- item\n", "```\ncode\n```\n"]), max_size=60
    )
)
def test_widened_passage_is_a_span_of_its_document(sentences: int, words: list[str]) -> None:
    """Whatever is widened holds the chunk, says what the document says there, and is within the bound."""
    document = Document("d", "", " ".join(words), TextFormat.MARKDOWN)
    outline = Outline.of(document)
    for chunk in Chunker(COUNTER, ChunkLimits(40, 12, 4)).chunk(document):
        passage = _passage(document, chunk)
        wide = expanded(passage, outline, Expansion(sentences, 30), COUNTER)
        assert document.text[wide.start : wide.end] == wide.text
        assert wide.start <= passage.start
        assert passage.end <= wide.end
        assert wide is passage or COUNTER.count(wide.text) <= 30


async def test_hits_are_widened_in_their_order_and_keep_their_scores() -> None:
    """Only the text around a hit is added; a hit whose document is gone stays as it is."""
    index = MemoryIndex()
    there = Document("d", "", TEXT, TextFormat.MARKDOWN)
    index.documents["d"] = EncodedDocument(there, "f", ())
    passages = [_at(TEXT, "They move oil."), replace(_at(TEXT, "It is green."), document_id="gone")]
    hits = [Hit(passage, 0.5, ScoreParts()) for passage in passages]
    wide = await expand(index, hits, Expansion(1, 100), COUNTER)
    assert [hit.score for hit in wide] == [0.5, 0.5]
    assert wide[0].passage.text == "Two pumps are there. They move oil. They are red."
    assert wide[1] is hits[1]


@pytest.mark.parametrize(
    ("kind", "expansion"), [("none", None), ("window", Expansion(2, 512)), ("section", Expansion(0, 512))]
)
def test_settings_say_how_hits_are_widened(kind: str, expansion: Expansion | None) -> None:
    """`context.expand` is what a request's thresholds have."""
    settings = Settings.model_validate({"context": {"expand": kind}})
    assert resolve(settings, Overrides()).expansion == expansion
