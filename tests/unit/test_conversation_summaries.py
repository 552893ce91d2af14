"""Summaries are made beside requests, from the one before, and found by their owner only."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retrieval.conversation.summaries import SUMMARISING, Owner, Summaries
from retrieval.errors import BackendUnavailable, DeadlineExceeded, Overloaded
from retrieval.settings.generation import ConversationSettings
from tests.fakes.side_models import ScriptedModel, WaitingModel
from tests.fakes.turns import assistant, user

OWNER = Owner("tenant", "internal", "manuals")
TURNS = tuple(
    turn for number in range(3) for turn in (user(f"How is pump {number} primed?"), assistant(f"By valve {number}."))
)
SETTINGS = ConversationSettings(summarise=True, summary_tokens=32)


async def made(summaries: Summaries, count: int, written: str | Exception, owner: Owner = OWNER) -> ScriptedModel:
    """Sums up the first turns and waits for it."""
    model = ScriptedModel(written)
    assert summaries.start(owner, TURNS, count, model, SETTINGS)
    await summaries.settle()
    return model


async def test_summary_is_found_by_the_turns_that_it_stands_for() -> None:
    """The longest summarised beginning is found, whatever follows it."""
    summaries = Summaries()
    model = await made(summaries, 2, "Pump 0 is primed by valve 0.")
    assert summaries.find(OWNER, TURNS) == (2, "Pump 0 is primed by valve 0.")
    assert summaries.find(OWNER, TURNS[:2]) == (2, "Pump 0 is primed by valve 0.")
    assert summaries.find(OWNER, TURNS[:1]) is None
    [(instructions, text, max_output_tokens, _)] = model.asked
    assert (instructions, max_output_tokens) == (SUMMARISING, 32)
    assert text == "User: How is pump 0 primed?\nAssistant: By valve 0."


async def test_summary_is_made_of_the_one_before_and_the_new_turns() -> None:
    """What a summary stands for already is not read again."""
    summaries = Summaries()
    await made(summaries, 2, "Pump 0: valve 0.")
    model = await made(summaries, 4, "Pumps 0 and 1: valves 0 and 1.")
    assert model.texts == ["Summary so far: Pump 0: valve 0.\nUser: How is pump 1 primed?\nAssistant: By valve 1."]
    assert summaries.find(OWNER, TURNS) == (4, "Pumps 0 and 1: valves 0 and 1.")


@pytest.mark.parametrize("field", ["tenant", "data_policy", "collection"])
async def test_summary_is_not_found_by_another_owner(field: str) -> None:
    """The same turns of another tenant, data policy or collection have no summary, and do not build on one."""
    summaries = Summaries()
    await made(summaries, 2, "Pump 0: valve 0.")
    other = replace(OWNER, **{field: "other"})
    assert summaries.find(other, TURNS) is None
    model = await made(summaries, 4, "Another.", other)
    assert "Summary so far" not in model.texts[0]


async def test_summary_is_not_found_by_other_turns() -> None:
    """A beginning that differs anywhere is another conversation."""
    summaries = Summaries()
    await made(summaries, 2, "Pump 0: valve 0.")
    edited = (replace(TURNS[0], text=TURNS[0].text + " "), *TURNS[1:])
    spoken_by_other = (assistant(TURNS[0].text), *TURNS[1:])
    joined = (user(TURNS[0].text + TURNS[1].text), *TURNS[2:])
    assert [summaries.find(OWNER, turns) for turns in (edited, spoken_by_other, joined)] == [None, None, None]


@pytest.mark.parametrize("written", ["", "  \n ", "I'm sorry, I cannot do that.", "pump " * 200])
async def test_unusable_summary_is_not_kept(written: str) -> None:
    """Blank, refusing or far too long text is no summary; it may be tried again."""
    summaries = Summaries()
    await made(summaries, 2, written)
    assert summaries.find(OWNER, TURNS) is None
    assert (summaries.made, summaries.failed) == (0, 1)
    await made(summaries, 2, "Pump 0: valve 0.")
    assert summaries.made == 1


@pytest.mark.parametrize(
    "error",
    [BackendUnavailable("a", "down"), Overloaded("requests", 1, 1.0), DeadlineExceeded("x", 1.0), TimeoutError()],
)
async def test_failing_model_leaves_no_summary(error: Exception) -> None:
    """A failure is counted and nothing else happens."""
    summaries = Summaries()
    await made(summaries, 2, error)
    assert summaries.find(OWNER, TURNS) is None
    assert summaries.failed == 1


async def test_summary_is_not_made_twice() -> None:
    """What is done or under way for the same turns is not started again."""
    summaries, model = Summaries(), WaitingModel()
    assert summaries.start(OWNER, TURNS, 2, model, SETTINGS)
    assert not summaries.start(OWNER, TURNS, 2, model, SETTINGS)
    model.go.set()
    await summaries.settle()
    assert not summaries.start(OWNER, TURNS, 2, model, SETTINGS)
    assert model.asked == 1


async def test_summaries_under_way_are_bounded() -> None:
    """A third one is refused while two are under way, and nothing is refused for ever."""
    summaries, model = Summaries(), WaitingModel()
    started = [summaries.start(OWNER, TURNS, count, model, SETTINGS) for count in (1, 2, 3)]
    assert started == [True, True, False]
    model.go.set()
    await summaries.settle()
    assert summaries.start(OWNER, TURNS, 3, model, SETTINGS)
    await summaries.settle()


@pytest.mark.parametrize("count", [0, 7])
async def test_summary_of_no_turns_is_not_started(count: int) -> None:
    """There must be turns to sum up."""
    assert not Summaries().start(OWNER, TURNS, count, ScriptedModel(), SETTINGS)


async def test_close_gives_up_what_is_under_way() -> None:
    """After closing nothing runs, nothing was kept, and nothing starts."""
    summaries, model = Summaries(), WaitingModel()
    summaries.start(OWNER, TURNS, 2, model, SETTINGS)
    await summaries.close()
    assert summaries.find(OWNER, TURNS) is None
    assert not summaries.start(OWNER, TURNS, 2, model, SETTINGS)


async def test_forgetting_reaches_what_is_kept_and_what_is_under_way() -> None:
    """A tenant's summaries can be forgotten, all or of one collection, and those of others stay."""
    summaries, other = Summaries(), replace(OWNER, tenant="other")
    await made(summaries, 2, "Pump 0: valve 0.")
    await made(summaries, 2, "Another's.", other)
    model = WaitingModel()
    summaries.start(OWNER, TURNS, 4, model, SETTINGS)
    assert summaries.forget("tenant", "letters") == 0
    assert summaries.forget("tenant", "manuals") == 1
    model.go.set()
    await summaries.settle()
    assert summaries.find(OWNER, TURNS) is None
    assert summaries.find(other, TURNS) == (2, "Another's.")


async def test_summaries_are_bounded_in_bytes() -> None:
    """However many conversations there are, the memory stays within its bound."""
    summaries = Summaries(capacity_bytes=4096)
    for number in range(40):
        summaries.start(replace(OWNER, collection=f"c{number}"), TURNS, 2, ScriptedModel("word " * 20), SETTINGS)
        await summaries.settle()
    assert summaries.figures.used_bytes <= 4096
    assert 0 < summaries.figures.entries < 40
