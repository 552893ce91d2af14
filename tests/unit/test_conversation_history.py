"""The newest turns that fit are kept, exchanges whole, with a summary of what was dropped."""

from __future__ import annotations

from retrieval.conversation.history import SUMMARY_MARGIN_TOKENS, TURN_MARGIN_TOKENS, fit_history
from retrieval.speech import Conversation
from tests.fakes.counters import WordCounter
from tests.fakes.turns import assistant, tool, user

COUNTER = WordCounter()
FIRST = (user("one two three"), assistant("four five six"))
LAST = (user("seven eight"), assistant("nine ten eleven twelve"))
ALL = (*FIRST, *LAST)
FIRST_TOKENS = LAST_TOKENS = 6 + 2 * TURN_MARGIN_TOKENS


def test_history_that_fits_is_kept_whole() -> None:
    """Nothing is dropped, and no summary is used, when there is room for everything."""
    fitted = fit_history(ALL, (2, "a summary"), FIRST_TOKENS + LAST_TOKENS, COUNTER)
    assert fitted.conversation == Conversation(ALL)
    assert (fitted.kept, fitted.dropped, fitted.summarised) == (4, 0, 0)
    assert fitted.token_count == FIRST_TOKENS + LAST_TOKENS


def test_history_drops_the_oldest_exchange_whole() -> None:
    """An answer is not kept without its question, though it would fit alone."""
    fitted = fit_history(ALL, None, FIRST_TOKENS + LAST_TOKENS - 1, COUNTER)
    assert fitted.conversation.turns == LAST
    assert fitted.dropped == 2


def test_history_keeps_tool_turns_with_their_question() -> None:
    """What a tool gave belongs to the exchange in which it was called."""
    turns = (user("one two three four"), tool("five"), assistant("six"))
    fitted = fit_history((*turns, *LAST), None, LAST_TOKENS + 12, COUNTER)
    assert fitted.conversation.turns == LAST


def test_history_keeps_the_answer_alone_when_nothing_else_fits() -> None:
    """Of the newest exchange the newest turn stays when both are too much."""
    fitted = fit_history(ALL, None, LAST_TOKENS - 1, COUNTER)
    assert fitted.conversation.turns == LAST[1:]
    assert (fitted.kept, fitted.dropped) == (1, 3)


def test_history_cuts_the_newest_turn_after_a_sentence() -> None:
    """A last turn that alone is too long ends after a whole sentence, with an ellipsis."""
    turns = (user("one"), assistant("Open the valve. Wait a minute. Then close it again slowly."))
    fitted = fit_history(turns, None, 8 + TURN_MARGIN_TOKENS, COUNTER)
    assert [turn.text for turn in fitted.conversation.turns] == ["Open the valve. …"]
    assert (fitted.kept, fitted.dropped) == (1, 1)


def test_history_cuts_the_newest_turn_after_a_word_when_no_sentence_fits() -> None:
    """Better half a sentence of what was said last than nothing."""
    fitted = fit_history((user("one two three four five six"),), None, 4 + TURN_MARGIN_TOKENS, COUNTER)
    assert [turn.text for turn in fitted.conversation.turns] == ["one two three …"]


def test_history_without_a_budget_is_empty() -> None:
    """With no tokens for history no turn is kept, and no summary."""
    fitted = fit_history(ALL, (2, "a summary"), 0, COUNTER)
    assert not fitted.conversation
    assert (fitted.kept, fitted.dropped, fitted.token_count) == (0, 4, 0)


def test_history_puts_the_summary_before_older_turns() -> None:
    """A known summary stands for what was dropped, and its tokens count."""
    budget = LAST_TOKENS + 2 + SUMMARY_MARGIN_TOKENS
    fitted = fit_history((*FIRST, *FIRST, *LAST), (2, "a summary"), budget, COUNTER)
    assert fitted.conversation == Conversation(LAST, "a summary")
    assert (fitted.kept, fitted.dropped, fitted.summarised, fitted.token_count) == (2, 4, 2, budget)


def test_history_prefers_the_newest_exchange_to_a_summary() -> None:
    """A summary that would cost the last exchange is left out."""
    fitted = fit_history(ALL, (2, "a summary " * 10), LAST_TOKENS + SUMMARY_MARGIN_TOKENS - 3, COUNTER)
    assert fitted.conversation == Conversation(LAST)
    assert fitted.summarised == 0


def test_history_does_not_count_what_cannot_fit() -> None:
    """The work is bounded by the budget, not by how long a turn is; the newest is cut to its beginning all the same."""
    long = "Open the valve. " + "word " * 200_000
    for turns in ((user("one"), assistant(long)), (user(long), assistant("two"))):
        counter = WordCounter()
        fitted = fit_history(turns, (1, "a summary"), 100, counter)
        assert fitted.kept == 1
        assert fitted.token_count <= 100
        assert counter.counted_chars < 20_000


def test_history_keeps_a_long_turn_that_fits() -> None:
    """A turn of several pieces that fits is kept whole, however large the budget is."""
    turns = (user("one"), assistant("word " * 50_000))
    fitted = fit_history(turns, None, 60_000, COUNTER)
    assert fitted.kept == 2
    assert 50_001 <= fitted.token_count - 2 * TURN_MARGIN_TOKENS <= 50_001 + 5 * 50_000 // 4096 + 1
