"""Equal questions have equal normal forms, and different ones never have."""

from __future__ import annotations

import pytest

from retrieval.answers.question import normalise

EQUAL = [
    ("What is the torque of valve 7?", "what is the torque of valve 7"),
    ("What is the torque of valve 7?", "  What is the\ttorque\nof valve 7 ??!"),
    ("What is the torque of valve 7?", "What is the torque of valve 7 ."),
    ("What\u2019s \u201cnew\u201d here?", 'What\'s "new" here?'),
    ("5\u201310 users?", "5-10 users"),
    ("Caf\u00e9 opening hours", "Cafe\u0301 opening hours"),
    ("Can I reset it?", "can i reset it"),
    ("How do I install it", "how do I install it..."),
    ("A pump leaks", "a pump leaks"),
    ("wait\u2026", "wait..."),
    ("\ufeffzero\u200bwidth", "zerowidth"),
]
DIFFERENT = [
    ("What is the torque of valve 7?", "What is the torque of valve 17?"),
    ("Revenue of unit K in 2023?", "Revenue of unit K in 2024?"),
    ("How to reset v2.1.0?", "How to reset v2.10?"),
    ("What is the boiling point at site 4?", "what's the boiling point at site 4"),
    ("Where is WHO?", "Where is who?"),
    ("What does getName do?", "What does getname do?"),
    ("How much is 5 MB?", "How much is 5 Mb?"),
    ("How much is 5 Mb?", "How much is 5 mb?"),
    ("How much is 5kB?", "How much is 5KB?"),
    ("What is unit K?", "What is unit k?"),
    ("What is 5!", "What is 5?"),
    ("What is n!", "What is n?"),
    ("Is C++ fast?", "Is C fast?"),
    ("x\u00b2?", "x2?"),
    ("Ma\u00dfe?", "Masse?"),
    ("run ```a  b```", "run ```a b```"),
    ("Is it on-line?", "Is it online?"),
    ("What is -5?", "What is 5?"),
    ("Which Polish gates are there?", "Which polish gates are there?"),
    ("Where does a turkey live?", "Where does a Turkey live?"),
    ("What does `Foo` do?", "What does `foo` do?"),
]


@pytest.mark.parametrize(("first", "second"), EQUAL)
def test_normal_form_levels_what_no_reader_takes_for_a_difference(first: str, second: str) -> None:
    """Case, white space, composed letters, curly marks and marks at the end are levelled."""
    assert normalise(first) == normalise(second)


@pytest.mark.parametrize(("first", "second"), DIFFERENT)
def test_normal_form_keeps_different_questions_apart(first: str, second: str) -> None:
    """SEM-02, SEM-04: numbers, versions, contractions, case that tells something, factorials and code stay apart."""
    assert normalise(first) != normalise(second)


def test_normal_form_of_nothing_is_empty() -> None:
    """A question of marks and spaces alone has nothing left."""
    assert normalise(" ?! . ") == ""
    assert normalise("") == ""
