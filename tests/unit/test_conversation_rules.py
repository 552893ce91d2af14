"""Follow-ups are told from questions that stand alone, and get the words that they lack."""

from __future__ import annotations

import pytest

from retrieval.conversation.rules import Standalone, leans_on_history, standalone_by_rules
from tests.fakes.turns import assistant, tool, user

POPULATION = "What was the estimated population of Pons Aelius around the 2nd century?"

FOLLOW_UPS = [
    (POPULATION, "Who founded it?", "Pons Aelius: Who founded it?"),
    (POPULATION, "When did Rome leave it?", "Pons Aelius: When did Rome leave it?"),
    (POPULATION, "Is it larger than London?", "Pons Aelius: Is it larger than London?"),
    ("Where did Marie Curie study?", "What did she discover?", "Marie Curie: What did she discover?"),
    ("How do I install Docker on Ubuntu?", "How can I uninstall it?", "Docker on Ubuntu: How can I uninstall it?"),
    (
        "Which filter does the kettle have?",
        "And how often is it replaced?",
        "filter kettle: And how often is it replaced?",
    ),
    ("What was the revenue of Apple in 2019?", "And in 2020?", "revenue of Apple: And in 2020?"),
    (
        "What was the revenue of Apple in 2019?",
        "What about Microsoft?",
        "revenue of Apple in 2019: What about Microsoft?",
    ),
    ("Maximum dose of ibuprofen?", "tell me more", "Maximum dose of ibuprofen: tell me more"),
    ("Maximum dose of ibuprofen?", "why?", "Maximum dose of ibuprofen: why?"),
    ("Maximum dose of ibuprofen?", "for children?", "Maximum dose of ibuprofen: for children?"),
    ("Maximum dose of ibuprofen?", "What are the advantages?", "Maximum dose of ibuprofen: What are the advantages?"),
    ("Should I use PostgreSQL or MySQL?", "Which is faster?", "Should I use PostgreSQL or MySQL: Which is faster?"),
    ("Why can't I use TLS?", "Can you explain that?", "Why can not I use TLS: Can you explain that?"),
    ("How do I configure PostgreSQL?", "How does it compare to MySQL?", "PostgreSQL: How does it compare to MySQL?"),
    ("Maximum dose of ibuprofen?", "is there another way?", "Maximum dose of ibuprofen: is there another way?"),
    (
        "Maximum dose of ibuprofen?",
        "can you give me an example?",
        "Maximum dose of ibuprofen: can you give me an example?",
    ),
    ("Wo wurde Marie Curie geboren?", "Wann starb er?", "Marie Curie geboren: Wann starb er?"),
    ("Was kostet ein Ticket nach Berlin?", "Was bedeutet das?", "kostet Ticket Berlin: Was bedeutet das?"),
    ("Was kostet ein Ticket nach Berlin?", "Und nach Hamburg?", "kostet Ticket Berlin: Und nach Hamburg?"),
    ("Was kostet ein Ticket nach Berlin?", "Warum?", "Was kostet ein Ticket nach Berlin: Warum?"),
    ("Quel est le prix du billet pour Paris ?", "Et pour Lyon ?", "prix billet Paris: Et pour Lyon ?"),
    ("¿Cuál es la capital de Perú?", "¿Y de Chile?", "capital Perú: ¿Y de Chile?"),
]

ALONE = [
    "What is the capital of France?",
    "How do I install Docker on Ubuntu?",
    "Is it possible to visit Rome in winter?",
    "How long does it take to renew a passport?",
    "If Docker fails, how do I restart it?",
    "How do plants make their food?",
    "What is the name of the gap that divides two teeth?",
    "Is there a student discount?",
    "How probable is it to get a hash collision?",
    "ok thanks!",
    "when did they stop putting lead in paint",
    "Docker: is it free?",
    "I made a mistake in the last commit. How do I change it?",
    "How do I read these strange log entries of nginx?",
    "What season was it when Genghis Khan took the city?",
    "Which is faster, PostgreSQL or MySQL?",
    "What does the error ERR_IO mean?",
    "docker compose volumes",
    "Wie hoch ist der Eiffelturm?",
    "And how do I install Docker on Ubuntu without root?",
    "東京の人口は何人ですか",
    "How does this year's budget differ from the budget of 2019?",
]


@pytest.mark.parametrize(("before", "question", "expected"), FOLLOW_UPS)
def test_follow_up_gets_the_words_that_it_lacks(before: str, question: str, expected: str) -> None:
    """What a follow-up leaves out stands before it, in the user's words and their order."""
    turns = [user(before), assistant("Let me see.")]
    assert leans_on_history(question, turns)
    assert standalone_by_rules(question, turns) == Standalone(expected, changed=True, by="rules")


@pytest.mark.parametrize("question", ALONE)
def test_question_that_stands_alone_is_left_alone(question: str) -> None:
    """A self-contained question is given back byte for byte."""
    turns = [user(POPULATION), assistant("About 2,000.")]
    assert not leans_on_history(question, turns)
    assert standalone_by_rules(question, turns) == Standalone(question, changed=False, by="")


@pytest.mark.parametrize("turns", [[], [assistant("How can I help?")], [tool("{}")]])
def test_question_without_an_earlier_question_is_left_alone(turns: list[object]) -> None:
    """Nothing is carried over where no user has spoken before."""
    assert standalone_by_rules("Who founded it?", turns).changed is False  # type: ignore[arg-type]


def test_person_comes_from_the_answer_that_named_them() -> None:
    """A pronoun for whoever was asked for takes the name from the answer, with what was asked."""
    turns = [user("Who wrote Hamlet?"), assistant("Hamlet was written by William Shakespeare around 1600.")]
    assert standalone_by_rules("When was he born?", turns).text == "William Shakespeare Hamlet: When was he born?"


def test_answers_words_are_not_carried_when_the_question_named_the_thing() -> None:
    """An answer that names more does not change what a pronoun stands for."""
    turns = [user("How do I install Docker?"), assistant("Use Ubuntu and the package of Canonical.")]
    assert standalone_by_rules("Is it free?", turns).text == "Docker: Is it free?"


@pytest.mark.parametrize(("choice", "item"), [("second", "MySQL 8"), ("2nd", "MySQL 8"), ("last", "SQLite")])
def test_choice_by_place_takes_the_item_of_the_list(choice: str, item: str) -> None:
    """A choice by its place, such as "the second one", takes that item of the last answer's list."""
    turns = [user("Which databases are supported?"), assistant("Three:\n1. PostgreSQL 15\n2. MySQL 8\n3. SQLite")]
    assert standalone_by_rules(f"How do I configure the {choice} one?", turns).text.startswith(item)


def test_topic_survives_follow_ups_and_thanks() -> None:
    """A follow-up to a follow-up still knows what the first question was about; thanks change nothing."""
    turns = [
        user("How do I install Docker on Ubuntu?"),
        assistant("With apt."),
        user("Can I uninstall it?"),
        assistant("Yes."),
        user("Thanks!"),
        assistant("You are welcome."),
    ]
    assert standalone_by_rules("Is it free?", turns).text == "Docker on Ubuntu: Is it free?"


def test_new_topic_replaces_the_old_one() -> None:
    """Only the last self-contained question is carried over, not what was spoken of before it."""
    turns = [user("How do I install Docker?"), assistant("So."), user("How tall is Mount Fuji?"), assistant("3,776 m.")]
    assert standalone_by_rules("Who climbed it first?", turns).text == "Mount Fuji: Who climbed it first?"


def test_tool_turns_are_not_read() -> None:
    """What a tool gave is nobody's speech."""
    turns = [user(POPULATION), tool("Who wrote Hamlet? Docker Ubuntu Kubernetes")]
    assert standalone_by_rules("Who founded it?", turns).text == "Pons Aelius: Who founded it?"


def test_long_question_is_left_alone() -> None:
    """A long question says itself what it is about, however it begins."""
    question = "And it " + "really does not start, although the pump was primed " * 8
    assert not leans_on_history(question, [user(POPULATION)])


def test_carried_words_are_bounded() -> None:
    """However long the earlier turns are, a few words are carried over."""
    turns = [user("Pump seal " + " ".join(f"Model{number} X{number}" for number in range(2000)))] * 3
    rewritten = standalone_by_rules("Why?", turns).text
    assert rewritten.endswith(": Why?")
    assert len(rewritten.split()) <= 64
