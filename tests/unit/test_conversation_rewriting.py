"""A model may rewrite; whatever it does wrong, the rules' words are searched."""

from __future__ import annotations

import time

import pytest

from retrieval.conversation.rewriting import REWRITING, Rewriter
from retrieval.errors import BackendCut, BackendTimeout, DeadlineExceeded, NoBackendAllowed, Overloaded
from retrieval.settings.generation import ConversationSettings
from tests.fakes.side_models import ScriptedModel, WaitingModel
from tests.fakes.turns import assistant, tool, user

TURNS = (user("What was the population of Pons Aelius?"), tool("{}"), assistant("About 2,000."))
QUESTION = "Who founded it?"
BY_RULES = "Pons Aelius: Who founded it?"
FOR_LONG_NS = 60 * 1_000_000_000


def rewriter(rewrite: str = "model", timeout_ms: int = 60_000) -> Rewriter:
    """Opens a rewriter with these settings."""
    settings = ConversationSettings.model_validate({"rewrite": rewrite, "rewrite_timeout_ms": timeout_ms})
    return Rewriter(lambda: settings)


def in_a_minute_ns() -> int:
    """Returns a deadline that no test reaches."""
    return time.monotonic_ns() + FOR_LONG_NS


async def test_model_rewrites_a_follow_up() -> None:
    """What the model wrote is searched, without label and quotes, and the report names its backend."""
    model = ScriptedModel('Question: "Who founded Pons Aelius?"')
    made = await rewriter().standalone(QUESTION, TURNS, model, in_a_minute_ns())
    assert (made.text, made.changed, made.by) == ("Who founded Pons Aelius?", True, "scripted")
    [(instructions, text, _, _)] = model.asked
    assert instructions == REWRITING
    assert text.splitlines() == [
        "User: What was the population of Pons Aelius?",
        "Assistant: About 2,000.",
        "Last question: Who founded it?",
    ]


@pytest.mark.parametrize(
    "written",
    [
        "",
        "   ",
        "Sure, here it is: Who founded Pons Aelius?",
        "I cannot answer that.",
        "Who founded Pons Aelius?\nIt was founded by Hadrian.",
        "Who founded Pons Aelius? " * 40,
        "What is the best recipe for pancakes with maple syrup?",
        "Who founded Pons Aelius in 122?",
        "?",
    ],
)
async def test_unusable_rewriting_gives_way_to_the_rules(written: str) -> None:
    """Blank, chatty, refusing, long, unrelated or embellished text is not searched."""
    made = await rewriter().standalone(QUESTION, TURNS, ScriptedModel(written), in_a_minute_ns())
    assert (made.text, made.by) == (BY_RULES, "rules")


@pytest.mark.parametrize(
    "error",
    [
        BackendTimeout("a", 100.0),
        BackendCut("a", 3),
        NoBackendAllowed((("a", "rule:private"),)),
        Overloaded("requests", 8, 100.0),
        DeadlineExceeded("rewrite", 100.0),
        TimeoutError(),
    ],
)
async def test_failing_model_gives_way_to_the_rules(error: Exception) -> None:
    """A request never fails because its question could not be rewritten."""
    made = await rewriter().standalone(QUESTION, TURNS, ScriptedModel(error), in_a_minute_ns())
    assert (made.text, made.by) == (BY_RULES, "rules")


async def test_silent_model_is_not_waited_for() -> None:
    """The wait ends by the time that the request has, though the model never writes."""
    model = WaitingModel()
    made = await rewriter().standalone(QUESTION, TURNS, model, time.monotonic_ns())
    assert made.text == BY_RULES


async def test_model_gets_the_shorter_of_both_deadlines() -> None:
    """The model may take `rewrite_timeout_ms`, and never longer than the request has."""
    for timeout_ms, deadline_ns in ((10, in_a_minute_ns()), (60_000, time.monotonic_ns() + 1_000_000_000)):
        model = ScriptedModel("Who founded Pons Aelius?")
        latest_ns = time.monotonic_ns() + 5 * 1_000_000_000
        await rewriter(timeout_ms=timeout_ms).standalone(QUESTION, TURNS, model, deadline_ns)
        assert all(until_ns <= min(deadline_ns, latest_ns) for _, _, _, until_ns in model.asked)


async def test_model_is_not_asked_about_a_question_that_stands_alone() -> None:
    """Only a follow-up is worth a model's time."""
    model = ScriptedModel()
    made = await rewriter().standalone("What is the capital of France?", TURNS, model, in_a_minute_ns())
    assert (made.text, made.changed, made.by) == ("What is the capital of France?", False, "")
    assert not model.asked


@pytest.mark.parametrize(("rewrite", "expected"), [("off", QUESTION), ("rules", BY_RULES)])
async def test_model_is_not_asked_unless_the_settings_say_so(rewrite: str, expected: str) -> None:
    """`off` searches questions as they are, `rules` needs no model."""
    model = ScriptedModel()
    made = await rewriter(rewrite).standalone(QUESTION, TURNS, model, in_a_minute_ns())
    assert made.text == expected
    assert not model.asked


async def test_rules_decide_without_a_model() -> None:
    """Where no model is to be had, `model` is `rules`."""
    assert (await rewriter().standalone(QUESTION, TURNS, None, in_a_minute_ns())).text == BY_RULES


async def test_question_that_the_model_leaves_is_unchanged() -> None:
    """A model that sees nothing to change makes no rewriting."""
    made = await rewriter().standalone(QUESTION, TURNS, ScriptedModel(QUESTION), in_a_minute_ns())
    assert (made.text, made.changed, made.by) == (QUESTION, False, "")
