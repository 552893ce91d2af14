"""The reasons that servers give for the end of an answer."""

from __future__ import annotations

import pytest

from retrieval.generation.openai_finishes import Finish
from retrieval.speech import FinishReason

_STOP, _LENGTH, _FILTER, _TOOLS, _OTHER = (
    FinishReason.STOP,
    FinishReason.LENGTH,
    FinishReason.CONTENT_FILTER,
    FinishReason.TOOL_CALLS,
    FinishReason.OTHER,
)


def finish(*words: str) -> Finish:
    """Returns what reads of the words, in their order."""
    read = Finish()
    for word in words:
        read.take(word)
    return read


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("stop STOP eos eos_token stop_sequence end_turn", _STOP),
        ("length max_tokens MAX_TOKENS model_length Max-Tokens", _LENGTH),
        ("content_filter content_filtered safety SAFETY recitation blocklist prohibited_content", _FILTER),
        ("tool_calls function_call tool_use", _TOOLS),
        ("timeout malformed_function_call finished unknown . stopped", _OTHER),
    ],
)
def test_words_of_all_servers_are_known_in_any_case(words: str, reason: FinishReason) -> None:
    """A word stands for one of ours; only what is known to be a stop is one."""
    assert {finish(word).reason(called=False) for word in words.split()} == {reason}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("length", "stop"), _LENGTH),
        (("content_filter", "stop", "length"), _FILTER),
        (("stop", "length"), _LENGTH),
        (("timeout", "stop"), _OTHER),
        (("stop", "stop"), _STOP),
    ],
)
def test_stop_takes_no_other_reasons_place(words: tuple[str, ...], reason: FinishReason) -> None:
    """Of several reasons the first counts that is no stop."""
    assert finish(*words).reason(called=False) is reason


def test_answer_without_a_reason_ended_for_one_that_is_not_known() -> None:
    """Nothing says that it is whole."""
    assert (finish().given, finish().reason(called=False)) == (False, _OTHER)


def test_stop_after_calls_is_a_call() -> None:
    """Servers say `stop` where the model waits for what its calls return; a limit stays one."""
    assert (finish("stop").reason(called=True), finish("length").reason(called=True)) == (_TOOLS, _LENGTH)


def test_answer_that_was_given_up_is_none() -> None:
    """Whatever reason came before."""
    assert finish("stop", "ABORT").aborted
    assert not finish("stop").aborted
