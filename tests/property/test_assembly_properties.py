"""What holds for every assembly, whatever the document, its chunks, their order and the budget."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from indexers.types import Passage
from retrieval.assembly import assemble
from retrieval.assembly.duplicates import _WORD, _words
from retrieval.types import Context, DropReason, Hit, ScoreParts
from tests.fakes.counters import WordCounter

DOCUMENTS = {
    name: " ".join(f"{name}{number * number % 97}" + (".\n" if number % 11 == 0 else "") for number in range(120))
    for name in ("alpha", "beta", "gamma")
}


@st.composite
def ranked_hits(draw: st.DrawFn) -> list[Hit]:
    """Draws chunks of the documents that overlap, meet, contain each other or lie apart, in any order."""
    spans = draw(
        st.lists(
            st.tuples(st.sampled_from(sorted(DOCUMENTS)), st.integers(0, 400), st.integers(1, 200)),
            max_size=12,
        )
    )
    scores = sorted(draw(st.lists(st.floats(0, 1), min_size=len(spans), max_size=len(spans))), reverse=True)
    found = []
    for place, ((name, start, length), score) in enumerate(zip(spans, scores, strict=True)):
        text = DOCUMENTS[name][start : start + length]
        ordinal = 2 * place  # never neighbours: the chunker leaves no visible character between those
        passage = Passage(f"c{place}", name, name, (), text, start, start + len(text), ordinal, 0, {})
        found.append(Hit(passage, score, ScoreParts()))
    return found


def pack(hits: list[Hit], budget: int, min_score: float) -> Context:
    """Assembles with a counter that the test can count with again."""
    return assemble(hits, budget, WordCounter(), 0.8, min_score)


@settings(max_examples=150, deadline=None)
@given(ranked_hits(), st.integers(0, 400), st.floats(0, 1))
def test_every_hit_is_cited_once_or_dropped_once(hits: list[Hit], budget: int, min_score: float) -> None:
    """Cited and dropped chunks together are exactly the hits."""
    context = pack(hits, budget, min_score)
    cited = [chunk_id for citation in context.citations for chunk_id in citation.chunk_ids]
    dropped = [entry.chunk_id for entry in context.dropped]
    assert sorted(cited + dropped) == sorted(hit.passage.chunk_id for hit in hits)
    weak = {hit.passage.chunk_id for hit in hits if hit.score < min_score}
    assert weak == {entry.chunk_id for entry in context.dropped if entry.reason is DropReason.MIN_SCORE}


@settings(max_examples=150, deadline=None)
@given(ranked_hits(), st.integers(0, 400))
def test_context_keeps_its_budget_and_its_offsets(hits: list[Hit], budget: int) -> None:
    """The text has as many tokens as it says and no more than allowed; every source is a span of its document."""
    context = pack(hits, budget, 0.0)
    assert context.token_count == WordCounter().count(context.text) <= budget
    assert [citation.number for citation in context.citations] == list(range(1, len(context.citations) + 1))
    for citation in context.citations:
        passage = citation.passage
        assert passage.text == DOCUMENTS[passage.document_id][passage.start : passage.end]
        assert passage.text.strip() in context.text


@settings(max_examples=50, deadline=None)
@given(ranked_hits(), st.integers(0, 400))
def test_assembly_is_stable(hits: list[Hit], budget: int) -> None:
    """Equal hits make equal contexts, byte for byte."""
    assert pack(hits, budget, 0.0) == pack(list(hits), budget, 0.0)


@given(st.text(alphabet=st.characters(max_codepoint=127)))
def test_ascii_words_are_the_words_of_any_text(text: str) -> None:
    """The quick way for ASCII splits as the way for all scripts does."""
    assert _words(text) == _WORD.findall(text.casefold())
