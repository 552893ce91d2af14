"""The ways to search a follow-up: as it is, by the rules, after the last question, and as it would stand alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from bench._common.conversation.making import Exchange
from retrieval.conversation.rules import standalone_by_rules
from retrieval.speech import Speaker, Turn

ARMS: Mapping[str, Callable[[Exchange], str]] = {
    "as it is": lambda one: one.follow_up,
    "rules": lambda one: rewritten(one.first, one.follow_up),
    "concatenated": lambda one: f"{one.first} {one.follow_up}",
    "self-contained": lambda one: one.gold.text,
}


def rewritten(first: str, question: str) -> str:
    """Returns what the rules make of a question after another one."""
    return standalone_by_rules(question, (Turn(Speaker.USER, first),)).text
