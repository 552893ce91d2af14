"""What looks hard, and what does not."""

from __future__ import annotations

import pytest

from retrieval.routing.complexity import Features, complexity, hardness
from retrieval.routing.question_kind import QuestionKind, question_kind
from tests.fakes.routing import found, passage


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When was the pump built?", QuestionKind.LOOKUP),
        ("How many bolts hold the flange?", QuestionKind.LOOKUP),
        ("torque of valve 7", QuestionKind.LOOKUP),
        ("", QuestionKind.LOOKUP),
        ("Is the valve open in winter?", QuestionKind.YES_NO),
        ("Why does the seal leak?", QuestionKind.EXPLANATION),
        ("How is the seal replaced?", QuestionKind.EXPLANATION),
        ("Which is better, grease or oil?", QuestionKind.COMPARISON),
        ("What is the difference between a pump and a compressor?", QuestionKind.COMPARISON),
        ("Who built it and when was it opened?", QuestionKind.SEVERAL),
        ("Who built it? What did it cost?", QuestionKind.SEVERAL),
        ("WHY IS IT HOT", QuestionKind.EXPLANATION),
    ],
)
def test_question_kind_is_read_from_words(question: str, kind: QuestionKind) -> None:
    """The most demanding kind that the words speak of is taken."""
    assert question_kind(question) is kind


def test_clear_evidence_makes_easy_and_unclear_makes_hard() -> None:
    """A good best passage with a lead is easy; a weak one that others equal is hard."""
    passages = [passage(1), passage(2)]
    clear = complexity("When was it built?", found(passages, scores=[0.8, 0.4]), in_conversation=False)
    unclear = complexity("When was it built?", found(passages, scores=[0.4, 0.4]), in_conversation=False)
    assert clear < 0.1
    assert unclear > 0.9


def test_more_demanding_kinds_look_harder_with_the_same_evidence() -> None:
    """With clear evidence a look-up looks easy, and several questions in one are half way."""
    order = [QuestionKind.LOOKUP, QuestionKind.YES_NO, QuestionKind.EXPLANATION, QuestionKind.COMPARISON]
    seen = [hardness(Features(kind, 8, 0.7, 0.3, in_conversation=False)) for kind in (*order, QuestionKind.SEVERAL)]
    assert seen == sorted(seen)
    assert seen[0] == pytest.approx(0.05, abs=0.02)
    assert seen[-1] == pytest.approx(0.5, abs=0.05)


def test_length_and_conversation_make_harder_within_bounds() -> None:
    """A long question and one in a conversation look harder, and nothing leaves [0, 1]."""
    base = Features(QuestionKind.LOOKUP, 8, 0.7, 0.1, in_conversation=False)
    longer = Features(QuestionKind.LOOKUP, 60, 0.7, 0.1, in_conversation=False)
    spoken = Features(QuestionKind.LOOKUP, 8, 0.7, 0.1, in_conversation=True)
    assert hardness(base) < min(hardness(longer), hardness(spoken))
    assert hardness(longer) == hardness(Features(QuestionKind.LOOKUP, 10_000, 0.7, 0.1, in_conversation=False))
    extreme = Features(QuestionKind.SEVERAL, 10_000, -50.0, -50.0, in_conversation=True)
    assert 0.0 <= hardness(extreme) <= 1.0


def test_question_without_hits_has_a_complexity() -> None:
    """Nothing found is as unclear as evidence can be."""
    assert complexity("When?", found([]), in_conversation=False) > 0.9
