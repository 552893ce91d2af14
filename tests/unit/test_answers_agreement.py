"""Two answers agree when their texts state the same, and in doubt they do not."""

from __future__ import annotations

import pytest

from retrieval.answers.agreement import answers_agree

AGREEING = [
    ("Redis listens on port 6379.", "Redis listens on port 6379."),
    ("Redis listens on port 6379 [1].", "Redis listens on port 6379 [2, 3]."),
    ("Redis listens on port 6379 [1][2].", "redis listens on port 6379"),
    ("The pump needs 5 kg of salt.", "The pump needs five kilograms of salt [4]."),
    ("In 2023, the revenue was $5 million.", "The revenue was 5 million dollars in 2023."),
    ("The valve opens at 40 percent.", "The valve opens at 40%."),
    ("The valve isn't locked.", "The valve is not locked."),
    ("Paris is the capital of France.", "Paris is France's capital."),
    ("You can usually reset the pump with the red button.", "You can reset the pump with the red button."),
    ("", ""),
]
DISAGREEING = [
    ("Redis listens on port 6379.", "Redis listens on port 6380."),
    ("Redis listens on port 6379.", "Postgres listens on port 6379."),
    ("It listens by default on redis ports.", "It listens by default on postgres ports."),
    ("The pump needs 5 kg of salt.", "The pump needs 5 lb of salt."),
    ("The pump was installed in 2023.", "The pump was installed in 2024."),
    ("The pump was installed in March.", "The pump was installed in May."),
    ("The valve is locked.", "The valve is not locked."),
    ("The valve is locked.", "The valve is unlocked."),
    ("Yes, the valve is supported.", "The valve is supported, no."),
    ("Supported since v2.1.0.", "Supported since v2.10."),
    ("Run it with --force.", "Run it with --quiet."),
    ("Call getName first.", "Call getAge first."),
    ("Tom manages Ann.", "Ann manages Tom."),
    ("Open the lid before the start.", "Open the lid after the start."),
    ("The first pump leaks.", "The last pump leaks."),
    ("All pumps leak.", "Pumps leak."),
    ("The gate code is 4471.", "The documents do not say."),
    ("The gate code is 4471.", ""),
    ("It is supported by Redis.", "It is supported by Redis and Postgres."),
    ("法国的首都是巴黎。", "法国的首都是里昂。"),
]


@pytest.mark.parametrize(("fresh", "cached"), AGREEING)
def test_answers_that_say_the_same_agree(fresh: str, cached: str) -> None:
    """Citations, case, contractions, spellings of quantities and moved phrases make no difference, both ways."""
    assert answers_agree(fresh, cached)
    assert answers_agree(cached, fresh)


@pytest.mark.parametrize(("fresh", "cached"), DISAGREEING)
def test_answers_that_differ_in_a_fact_disagree(fresh: str, cached: str) -> None:
    """A figure, unit, date, name, identifier, negation or direction that differs makes a disagreement, both ways."""
    assert not answers_agree(fresh, cached)
    assert not answers_agree(cached, fresh)


def test_numbers_in_brackets_that_are_no_citations_count() -> None:
    """Only bare lists of numbers in square brackets are citation marks."""
    assert not answers_agree("Use items[a1].", "Use items[a2].")
    assert not answers_agree("It takes (5) steps.", "It takes (6) steps.")


def test_an_answer_about_something_else_disagrees() -> None:
    """The facts of an answer may all be missing from another without contradicting it: that is no agreement."""
    assert not answers_agree("Turn the handle slowly.", "Ask your manager about the report.")
