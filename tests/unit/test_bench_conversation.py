"""Conversations are made of labelled questions so that what their follow-ups should find is known."""

from __future__ import annotations

from bench._common.beir import BeirSet, Question
from bench._common.conversation.arms import ARMS, rewritten
from bench._common.conversation.making import Exchange, exchanges, related, unrelated

PUMPS = BeirSet(
    "pumps",
    (),
    (
        Question("q1", "When was the Archimedes screw invented?", {"d1": 1}),
        Question("q2", "Which farms use the Archimedes screw in Egypt?", {"d2": 1}),
        Question("q3", "How tall is Mount Fuji?", {"d3": 1}),
    ),
)


def of_form(form: str) -> list[Exchange]:
    """Returns the conversations of one form."""
    return [one for one in exchanges(PUMPS, 10) if one.form == form]


def test_pronoun_stands_for_what_both_questions_name() -> None:
    """The shared name is replaced with its article, and the follow-up keeps its labels and its own words."""
    made = {one.follow_up: one for one in of_form("pronoun")}
    [(follow_up, one)] = made.items()
    assert follow_up == "Which farms use it in Egypt?"
    assert one.gold.relevant == {"d2": 1}
    assert one.first == "When was the Archimedes screw invented?"
    assert not one.same_passage


def test_what_about_leaves_out_all_that_is_shared() -> None:
    """Only the second question's own content words are left."""
    assert "what about farms use Egypt?" in {one.follow_up for one in of_form("what about")}


def test_more_asks_about_the_first_question() -> None:
    """Asking for more should find what the first question finds."""
    assert all(one.gold.text == one.first and one.same_passage for one in of_form("more"))


def test_arms_search_a_follow_up_in_four_ways() -> None:
    """As it is, by the rules, after the last question, and as it was before it was made one."""
    [one] = [one for one in of_form("pronoun") if one.gold.query_id == "q2"]
    assert {name: text(one) for name, text in ARMS.items()} == {
        "as it is": "Which farms use it in Egypt?",
        "rules": "Archimedes screw: Which farms use it in Egypt?",
        "concatenated": "When was the Archimedes screw invented? Which farms use it in Egypt?",
        "self-contained": "Which farms use the Archimedes screw in Egypt?",
    }


def test_questions_that_stand_alone_are_asked_after_others() -> None:
    """Harm is judged after questions about the same and after any, on questions that were not touched."""
    assert {question.query_id for _, question in related(PUMPS, 10)} == {"q1", "q2"}
    assert all(before != question.text for before, question in unrelated(PUMPS, 10))
    assert rewritten("How tall is Mount Fuji?", PUMPS.questions[0].text) == PUMPS.questions[0].text
