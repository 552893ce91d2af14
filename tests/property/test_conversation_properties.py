"""Rewriting by rules and fitting history, whatever the conversation."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from retrieval.answers.facts.vocabulary import word_set
from retrieval.conversation.history import fit_history
from retrieval.conversation.rules import leans_on_history, standalone_by_rules
from retrieval.speech import Speaker, Turn
from tests.fakes.counters import WordCounter

WORDS = sorted(
    word_set("""
who what about and in 2020 it its that this the Docker Ubuntu founded why which one faster second Apple of how is price
und der Preis et pour Lyon y , . ? : them when does install Marie Curie she not more v1.2 getName() 東京 What It Pons:
dose maximum 3rd other both thanks
""")
)
SPOKEN = st.lists(st.sampled_from(WORDS), min_size=1, max_size=12).map(" ".join) | st.text(min_size=1, max_size=80)
TURNS = st.lists(st.builds(Turn, st.sampled_from(list(Speaker)), SPOKEN), max_size=8)
SENTENCES = st.lists(
    st.sampled_from(["One two.", "Three four five.", "Six seven", "e.g. eight!"]), min_size=1, max_size=9
)
FITTED_TURNS = st.lists(st.builds(Turn, st.sampled_from(list(Speaker)), SENTENCES.map(" ".join)), max_size=9)


@given(SPOKEN, TURNS)
def test_rewriting_twice_is_rewriting_once(question: str, turns: list[Turn]) -> None:
    """A question that was made self-contained stands alone from then on."""
    once = standalone_by_rules(question, turns)
    twice = standalone_by_rules(once.text, turns)
    assert twice.text == once.text
    assert not twice.changed


@given(SPOKEN, TURNS)
def test_rewriting_keeps_the_question_and_is_bounded(question: str, turns: list[Turn]) -> None:
    """The question itself stays as it was asked, at the end; what is put before it is short and from the turns."""
    rewritten = standalone_by_rules(question, turns)
    assert rewritten.text.strip().endswith(question.strip())
    assert len(rewritten.text) <= len(question) + 3000
    assert rewritten.changed == (rewritten.text != question)
    if rewritten.changed:
        assert leans_on_history(question, turns)


@given(FITTED_TURNS, st.integers(0, 60), st.none() | st.tuples(st.integers(1, 9), SENTENCES.map(" ".join)))
def test_history_fits_its_budget(turns: list[Turn], budget: int, summary: tuple[int, str] | None) -> None:
    """Tokens never exceed the budget, every turn is kept or dropped, and what is kept are the newest in their order."""
    fitted = fit_history(turns, summary, budget, WordCounter())
    kept = fitted.conversation.turns
    assert fitted.token_count <= budget
    assert fitted.kept + fitted.dropped == len(turns)
    assert len(kept) == fitted.kept
    assert fitted.summarised <= fitted.dropped
    assert bool(fitted.summarised) == bool(fitted.conversation.summary)
    newest = turns[fitted.dropped :]
    assert [turn.speaker for turn in kept] == [turn.speaker for turn in newest]
    if len(kept) != 1:
        assert list(kept) == newest


@given(FITTED_TURNS, st.integers(0, 60))
def test_more_budget_never_keeps_fewer_turns(turns: list[Turn], budget: int) -> None:
    """History grows with its budget."""
    counter = WordCounter()
    less, more = (fit_history(turns, None, tokens, counter) for tokens in (budget, budget + 7))
    assert more.kept >= less.kept
