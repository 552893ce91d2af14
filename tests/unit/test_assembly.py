"""Assembly: what is left out and why, what is merged, how it is numbered, and that the budget holds."""

from __future__ import annotations

import pytest

from indexers.types import Passage
from retrieval.assembly import assemble
from retrieval.token_counters import open_counter
from retrieval.types import Context, Dropped, DropReason, Hit, ScoreParts
from tests.fakes.counters import SurchargeCounter, WordCounter

WORDS = ("alpha bravo charlie delta echo foxtrot golf hotel india juliet kilo lima mike november oscar papa").split()  # noqa: SIM905


def passage(chunk_id: str, text: str, document_id: str = "", start: int = 0, **changes: object) -> Passage:
    """Returns a passage at an offset of its document; a document of its own unless one is named."""
    fields: dict[str, object] = {"title": "", "heading_path": (), "ordinal": 0, "page": 0, "metadata": {}} | changes
    return Passage(
        chunk_id=chunk_id,
        document_id=document_id or f"doc-{chunk_id}",
        text=text,
        start=start,
        end=start + len(text),
        **fields,  # type: ignore[arg-type]
    )


def hits(*passages: Passage) -> list[Hit]:
    """Ranks passages in the given order."""
    return [Hit(each, 1.0 - rank / 100, ScoreParts()) for rank, each in enumerate(passages)]


def pack(ranked: list[Hit], budget: int = 1000, min_score: float = -1.0, counter: WordCounter | None = None) -> Context:
    """Assembles with the settings that most tests share."""
    return assemble(ranked, budget, counter or WordCounter(), 0.8, min_score)


def test_context_without_hits_is_empty() -> None:
    """No hits make an empty context, not an error."""
    context = pack([])
    assert (context.text, context.token_count, context.citations, context.dropped) == ("", 0, (), ())
    assert (context.budget_tokens, context.tokenizer) == (1000, "words")


def test_context_shows_mark_trail_and_text() -> None:
    """A source is its mark, title and headings on one line, none twice in a row, and then the text."""
    first = passage("a", "Turn the key.", title="Pump  manual\n", heading_path=("Pump manual", "Start"))
    second = passage("b", "  Mind the gap.\n")
    assert pack(hits(first, second)).text == "[1] Pump manual > Start\nTurn the key.\n\n[2]\nMind the gap."


def test_long_titles_are_cut() -> None:
    """A title never crowds out its passage."""
    text = pack(hits(passage("a", "Turn the key.", title="very " * 500))).text
    assert len(text) < 300
    assert "…\nTurn the key." in text


def test_min_score_is_inclusive() -> None:
    """A score equal to the threshold stays; one below it is dropped for that reason."""
    ranked = [Hit(passage("a", "Turn the key."), 0.5, ScoreParts()), Hit(passage("b", "Other."), 0.49, ScoreParts())]
    context = pack(ranked, min_score=0.5)
    assert [citation.chunk_ids for citation in context.citations] == [("a",)]
    assert context.dropped == (Dropped("b", DropReason.MIN_SCORE),)


@pytest.mark.parametrize(
    ("text", "is_duplicate"),
    [
        (" ".join(WORDS), True),
        (" ".join(WORDS).upper() + "!", True),
        (" ".join(WORDS[:10]), True),
        (" ".join([*WORDS[:12], "zulu"]), True),  # 8 of 9 grams
        (" ".join([*WORDS[:12], "x", "y", "z"]), False),  # 8 of 11
        (" ".join(reversed(WORDS)), False),
        ("aword bword cword", False),  # too short for 5-grams, and equal to nothing
    ],
)
def test_near_duplicates_of_a_better_passage_are_dropped(text: str, is_duplicate: bool) -> None:
    """A passage most of whose word 5-grams stand in a better one is dropped, whatever its case and punctuation."""
    context = pack(hits(passage("a", " ".join(WORDS)), passage("b", text)))
    assert context.dropped == ((Dropped("b", DropReason.DUPLICATE),) if is_duplicate else ())


def test_overlap_that_equals_the_setting_is_a_duplicate() -> None:
    """The share counts as reached when it is exactly reached: 4 of 5 grams at 0.8."""
    context = pack(hits(passage("a", " ".join(WORDS)), passage("b", " ".join([*WORDS[:8], "zulu"]))))
    assert context.dropped == (Dropped("b", DropReason.DUPLICATE),)


def test_short_passages_are_duplicates_when_equal() -> None:
    """Short texts are compared whole, without case and punctuation."""
    context = pack(hits(passage("a", "Turn the key."), passage("b", "turn the KEY"), passage("c", "Turn the valve.")))
    assert context.dropped == (Dropped("b", DropReason.DUPLICATE),)


def test_grams_spread_over_several_passages_make_no_duplicate() -> None:
    """A summary of two passages is new: no single better passage says it all."""
    first, second = WORDS[:8], WORDS[8:]
    both = passage("c", " ".join(first + second))
    assert pack(hits(passage("a", " ".join(first)), passage("b", " ".join(second)), both)).dropped == ()


def test_duplicate_of_a_passage_that_did_not_fit_gets_its_chance() -> None:
    """Only what is in the context makes a duplicate: the short version of a passage that was too long is taken."""
    long = passage("a", " ".join(WORDS * 20))
    context = pack(hits(long, passage("b", " ".join(WORDS))), budget=40)
    assert [citation.chunk_ids for citation in context.citations] == [("b",)]
    assert context.dropped == (Dropped("a", DropReason.BUDGET),)


def test_packing_goes_around_a_passage_that_does_not_fit() -> None:
    """A passage that is too long is left out, and later ones that fit are taken."""
    ranked = hits(passage("a", "one two three"), passage("b", " ".join(WORDS)), passage("c", "four five six"))
    context = pack(ranked, budget=14)
    assert context.text == "[1]\none two three\n\n[2]\nfour five six"
    assert context.dropped == (Dropped("b", DropReason.BUDGET),)
    assert context.token_count == 12 <= context.budget_tokens


def test_budget_counts_marks_and_titles() -> None:
    """A passage whose text alone would fit is left out when its title and mark do not."""
    titled = passage("a", "one two three", title="four five six")
    assert pack(hits(titled), budget=9).token_count == 9
    assert pack(hits(titled), budget=8).dropped == (Dropped("a", DropReason.BUDGET),)


def test_whole_text_is_counted_and_loses_its_last_passages() -> None:
    """Where the whole has more tokens than its parts, the worst passages go until the whole fits."""
    ranked = hits(*(passage(name, f"{name} one two") for name in "abcd"))
    context = pack(ranked, budget=24, counter=SurchargeCounter())
    assert context.token_count == SurchargeCounter().count(context.text) <= 24
    assert [citation.chunk_ids for citation in context.citations] == [("a",), ("b",), ("c",)]
    assert context.dropped == (Dropped("d", DropReason.BUDGET),)


DOCUMENT = "The pump starts when the key is turned. Then it runs for an hour. After that it stops by itself, and cools."


def cut(chunk_id: str, start: int, end: int, ordinal: int, **changes: object) -> Passage:
    """Returns a span of DOCUMENT."""
    return passage(chunk_id, DOCUMENT[start:end], "pump", start, ordinal=ordinal, **changes)


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1), (1, 2, 0)])
def test_overlapping_and_meeting_chunks_are_merged(order: tuple[int, ...]) -> None:
    """Chunks of a document that overlap or meet become one source, in reading order, exactly as the document reads."""
    chunks = [cut("a", 0, 50, 0), cut("b", 40, 70, 1), cut("c", 70, 100, 2)]
    context = pack(hits(*(chunks[place] for place in order), passage("z", "Other things.")))
    merged, other = context.citations
    assert merged.passage.text == DOCUMENT[merged.passage.start : merged.passage.end] == DOCUMENT[:100]
    assert merged.chunk_ids == ("a", "b", "c")
    assert (merged.number, other.number) == (1, 2)
    assert context.text == f"[1]\n{DOCUMENT[:100]}\n\n[2]\nOther things."


def test_chunk_inside_another_adds_nothing() -> None:
    """A chunk that lies inside another is cited with it."""
    (source,) = pack(hits(cut("b", 10, 20, 1), cut("a", 0, 60, 0))).citations
    assert source.passage.text == DOCUMENT[:60]
    assert source.chunk_ids == ("a", "b")


def test_chunks_that_disagree_stay_apart() -> None:
    """Chunks of two versions of a document, whose shared span reads differently, are not joined."""
    stale = passage("b", DOCUMENT[40:70].upper(), "pump", 40)
    assert len(pack(hits(cut("a", 0, 50, 0), stale)).citations) == 2


def test_merged_source_stands_under_the_headings_its_chunks_share() -> None:
    """A merged source names the section that holds all of it, and the page on which it begins."""
    first = cut("a", 0, 50, 0, heading_path=("Use", "Start"), page=3)
    second = cut("b", 50, 80, 1, heading_path=("Use", "Stop"), page=4)
    (source,) = pack(hits(second, first)).citations
    assert (source.passage.heading_path, source.passage.page) == (("Use",), 3)


def test_merging_makes_room() -> None:
    """A chunk that continues a source costs its new text only, so it fits where a source of its own would not."""
    first, second = cut("a", 0, 50, 0), cut("b", 40, 70, 1)
    budget = WordCounter().count(f"[1]\n{DOCUMENT[:70]}") + 4
    assert pack(hits(first, second), budget=budget).dropped == ()


def test_sources_are_numbered_by_relevance() -> None:
    """Numbers follow the best chunk of each source, not the order of documents."""
    other = passage("z", "Other things.")
    context = pack(hits(cut("c", 60, 80, 2), other, cut("b", 40, 60, 1)))
    assert [(citation.number, citation.chunk_ids) for citation in context.citations] == [(1, ("b", "c")), (2, ("z",))]


def test_long_lists_are_not_counted_to_the_end() -> None:
    """What cannot fit any more is not counted: the work is bounded by the budget, not by the number of hits."""
    counter = WordCounter()
    pack(hits(*(passage(str(number), f"{number} " * 400) for number in range(200))), budget=900, counter=counter)
    assert counter.counted_chars < 200_000


def test_neighbouring_chunks_are_merged_over_a_paragraph_break() -> None:
    """Consecutive chunks of a document become one source: offsets hold, and only white space stands between them."""
    document = "Drain the pump first.\n\nThen take the seal out.\n\n\n   Order part K16."
    parts = ["Drain the pump first.", "Then take the seal out.", "Order part K16."]
    chunks = [passage(f"c{place}", text, "d", document.index(text), ordinal=place) for place, text in enumerate(parts)]
    context = pack(hits(chunks[2], chunks[0], chunks[1]))
    [source] = context.citations
    assert source.chunk_ids == ("c0", "c1", "c2")
    merged = source.passage
    assert len(merged.text) == merged.end - merged.start
    assert merged.text.split() == document[merged.start : merged.end].split()
    assert context.text.startswith("[1]\nDrain the pump first.\n\nThen take the seal out.\n\n")


def test_chunks_apart_stay_apart() -> None:
    """Chunks that are not consecutive, or of two documents, are sources of their own."""
    ranked = hits(passage("a", "Drain it.", "d", 0, ordinal=0), passage("c", "Fill it.", "d", 12, ordinal=2))
    assert len(pack(ranked).citations) == 2
    ranked = hits(passage("a", "Drain it.", "d", 0, ordinal=0), passage("b", "Fill it.", "e", 12, ordinal=1))
    assert len(pack(ranked).citations) == 2


def test_stored_counts_give_the_tokens_of_the_whole() -> None:
    """With counts stored at indexing nothing but heads is counted, and the sum is the count of the text."""
    plain = open_counter("bundled")
    texts = [f"Valve {place} is tightened to {40 + place} newton-metres; see ISO-{place}." for place in range(6)]
    chunks = [
        passage(f"c{place}", text, title=f"Manual {place}", token_count=plain.count(text))
        for place, text in enumerate(texts)
    ]
    stored = open_counter("bundled", knows_passages=True)
    context = assemble(hits(*chunks), 1000, stored, 0.8, -1.0)
    assert context.token_count == plain.count(context.text)
    assert assemble(hits(*chunks), 1000, plain, 0.8, -1.0) == context
    tight = assemble(hits(*chunks), context.token_count - 1, stored, 0.8, -1.0)
    assert [one.reason for one in tight.dropped] == [DropReason.BUDGET]
