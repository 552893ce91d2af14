"""What holds of normal forms, facts and comparisons for any text."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from retrieval.answers.agreement import answers_agree
from retrieval.answers.guard import compare, read_facts
from retrieval.answers.question import normalise

LONGEST = 32 * 1024
WORDS = """
what is the port of redis Redis WHO who not n't without 7 17 five kg lb 2023 March may , ? ! . 's and or from
to in by A a getName --force v2.1.0 1,000 50% $5 `x y` before after enable disable please tell me how do I
first last every twenty five million \u2167 \u00e9 \u6f22\u5b57 /etc/hosts x-ray read-only C++ isn't \u0130
\u00df
"""
QUESTIONS = st.lists(st.sampled_from(WORDS.split()), max_size=14).map(" ".join)
TEXTS = st.one_of(QUESTIONS, st.text(max_size=80))
SHAPES = [
    "a of b ",
    "not x ",
    "what is ",
    "please ",
    "'",
    "-",
    "a-",
    "1,",
    "1.",
    "//",
    "x" * 40 + " ",
    "in ",
    "five million ",
]


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_normal_form_of_a_normal_form_is_itself(text: str) -> None:
    """Normalising twice changes nothing."""
    assert normalise(normalise(text)) == normalise(text)


@given(TEXTS)
@settings(max_examples=300, deadline=None)
def test_a_question_passes_against_itself(text: str) -> None:
    """A question is no look-alike of itself."""
    comparison = compare(read_facts(text), read_facts(text))
    assert comparison.refused == ""
    assert comparison.jaccard == comparison.asked_contained == comparison.stored_contained == 1.0
    assert comparison.equal_content
    assert comparison.asked_unmatched == comparison.stored_unmatched == 0


@given(TEXTS, TEXTS)
@settings(max_examples=400, deadline=None)
def test_comparisons_are_symmetric(first: str, second: str) -> None:
    """Which question was stored changes no refusal, and swaps the figures of the sides."""
    forward = compare(read_facts(first), read_facts(second))
    backward = compare(read_facts(second), read_facts(first))
    assert forward.refused == backward.refused
    assert forward.jaccard == backward.jaccard
    assert forward.equal_content == backward.equal_content
    assert forward.asked_contained == backward.stored_contained
    assert forward.asked_unmatched == backward.stored_unmatched
    for figure in (forward.jaccard, forward.asked_contained, forward.stored_contained, forward.order_agreement):
        assert 0.0 <= figure <= 1.0


@given(st.integers(0, 9999), st.integers(0, 9999))
@settings(max_examples=100, deadline=None)
def test_other_numbers_never_pass(first: int, second: int) -> None:
    """Whatever the numbers, questions that differ in them are refused."""
    refused = compare(read_facts(f"Torque of valve {first}?"), read_facts(f"Torque of valve {second}?")).refused
    assert (refused == "") == (first == second)


@given(QUESTIONS)
@settings(max_examples=200, deadline=None)
def test_questions_with_equal_normal_forms_pass(text: str) -> None:
    """The guard never parts what the normal form joins by marks and spaces."""
    spaced = "  ".join(text.split(" ")) + " ?"
    if normalise(spaced) == normalise(text) and "`" not in text:
        assert compare(read_facts(spaced), read_facts(text)).refused == ""


@given(TEXTS, TEXTS)
@settings(max_examples=200, deadline=None)
def test_agreement_is_reflexive_and_symmetric(first: str, second: str) -> None:
    """An answer agrees with itself, and agreement has no direction."""
    assert answers_agree(first, first)
    assert answers_agree(first, second) == answers_agree(second, first)


@given(st.sampled_from(SHAPES), st.sampled_from(SHAPES))
@settings(max_examples=60, deadline=None)
def test_the_longest_questions_are_read_and_compared(first: str, second: str) -> None:
    """Questions of 32 KiB of the worst shapes are read like others; quadratic steps would hang here."""
    long_first, long_second = ((shape * LONGEST)[:LONGEST] for shape in (first, second))
    comparison = compare(read_facts(long_first), read_facts(long_second))
    assert (comparison.refused == "") or first != second
    assert normalise(normalise(long_first)) == normalise(long_first)
