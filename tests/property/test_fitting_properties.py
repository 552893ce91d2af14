"""What holds for every context that is fitted to another model."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.assembly.fitting import fit_context, render
from retrieval.types import Context, DropReason
from tests.fakes.counters import SurchargeCounter, WordCounter
from tests.fakes.routing import found, passage


class OtherWords(WordCounter):
    """Counts as `WordCounter` does, under another name."""

    name = "other"


@st.composite
def contexts(draw: st.DrawFn) -> Context:
    """Draws an assembled context of up to eight passages."""
    lengths = draw(st.lists(st.integers(1, 60), max_size=8))
    return found([passage(number, words) for number, words in enumerate(lengths, 1)]).context


@settings(max_examples=150, deadline=None)
@given(contexts(), st.integers(-5, 600), st.sampled_from([WordCounter, OtherWords, SurchargeCounter]))
def test_fitted_context_keeps_its_budget_and_as_much_as_fits(
    context: Context, budget: int, make: type[WordCounter]
) -> None:
    """What is left is the longest beginning that fits, by the count of the whole text."""
    counter = make()
    fitted = fit_context(context, budget, counter)
    kept = len(fitted.citations)
    assert fitted.citations == context.citations[:kept]
    assert counter.count(fitted.text) <= max(0, budget)
    if kept < len(context.citations):
        assert counter.count(render(context.citations[: kept + 1])) > budget


@settings(max_examples=100, deadline=None)
@given(contexts(), st.integers(0, 600), st.sampled_from([WordCounter, OtherWords, SurchargeCounter]))
def test_fitted_context_reads_as_if_assembled(context: Context, budget: int, make: type[WordCounter]) -> None:
    """The text is byte for byte the beginning of the whole, and so of what assembly writes of those passages alone."""
    fitted = fit_context(context, budget, make())
    assert fitted.text == found([citation.passage for citation in fitted.citations]).context.text
    assert context.text.startswith(fitted.text)
    assert render(context.citations) == context.text


@settings(max_examples=100, deadline=None)
@given(contexts(), st.integers(0, 600))
def test_fitting_loses_no_chunk_silently(context: Context, budget: int) -> None:
    """Each chunk is cited or dropped, and what fitting drops is said to have had no room."""
    fitted = fit_context(context, budget, OtherWords())
    cited = [chunk_id for citation in fitted.citations for chunk_id in citation.chunk_ids]
    gone = [entry.chunk_id for entry in fitted.dropped]
    assert cited + gone == [chunk_id for citation in context.citations for chunk_id in citation.chunk_ids]
    assert all(entry.reason is DropReason.BUDGET for entry in fitted.dropped)
    assert (fitted.tokenizer, fitted.budget_tokens) == ("other", budget)
    assert fitted.token_count == OtherWords().count(fitted.text)


@settings(max_examples=50, deadline=None)
@given(contexts())
def test_context_that_fits_is_the_same_object(context: Context) -> None:
    """A context that was counted by this tokenizer and fits is neither counted nor written again."""
    counter = WordCounter()
    assert fit_context(context, context.token_count, counter) is context
    assert counter.counted_chars == 0
