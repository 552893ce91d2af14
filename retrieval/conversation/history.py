"""Which of the earlier turns a model reads: the newest that fit, whole ones, and a summary of those before.

A question and what was said to it stay together as long as anything else can be left out. Three exceptions, each
only for the newest exchange: when it does not fit whole, its newest turns that fit are kept alone; when not even its
last turn fits, that one is cut after a sentence (or a word, when there is no sentence's end) and ends in an ellipsis,
since a model without the turn that a follow-up refers to cannot answer it; when nothing of it fits, nothing is kept.
A summary takes its tokens before the turns do, but never those of the newest exchange.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from encoders.types import TokenCounter
from indexers.sentences import sentence_spans
from retrieval.assembly.long_texts import LONGEST_TOKEN, count_up_to, pieces
from retrieval.speech import NOTHING_SAID, Conversation, Speaker, Turn

TURN_MARGIN_TOKENS = 4
"""What chat templates put around a message, about: its role and two marks."""

SUMMARY_MARGIN_TOKENS = 16
"""Room for the words that introduce a summary, besides it."""

_ELLIPSIS = " …"


@dataclass(frozen=True, slots=True)
class Fitted:
    """What a model gets to read, what became of each turn, and what it costs."""

    conversation: Conversation
    kept: int  # a turn that was cut counts as kept
    dropped: int  # the oldest; kept + dropped is all
    summarised: int  # of those dropped, the ones that the summary stands for
    token_count: int  # margins included; never above the budget


def fit_history(
    turns: Sequence[Turn], known_summary: tuple[int, str] | None, budget_tokens: int, counter: TokenCounter
) -> Fitted:
    """Returns the newest turns that fit the budget; the summary of the first ones only when some are dropped.

    `known_summary` is how many of the first turns a summary stands for, and the summary.
    """
    plain = _newest(turns, budget_tokens, counter)
    if not plain.dropped or known_summary is None:
        return plain
    count, summary = known_summary
    cost = counter.count(summary) + SUMMARY_MARGIN_TOKENS
    beside = _newest(turns, budget_tokens - cost, counter)
    if cost > budget_tokens or beside.kept < min(plain.kept, _last_exchange(turns)):
        return plain
    conversation = replace(beside.conversation, summary=summary)
    summarised = min(count, beside.dropped)
    return replace(beside, conversation=conversation, summarised=summarised, token_count=beside.token_count + cost)


def _newest(turns: Sequence[Turn], budget: int, counter: TokenCounter) -> Fitted:
    """The newest exchanges that fit whole; of the newest one at least a part."""
    start, used = len(turns), 0
    for first in _exchange_starts(turns):
        cost = _cost(turns[first:start], budget - used, counter)
        if used + cost > budget:
            break
        start, used = first, used + cost
    if start == len(turns):
        return _part(turns, budget, counter)
    return Fitted(Conversation(tuple(turns[start:])), len(turns) - start, start, 0, used)


def _exchange_starts(turns: Sequence[Turn]) -> Iterator[int]:
    """Where exchanges begin, newest first: at each user's turn, and at the beginning."""
    for place in range(len(turns) - 1, -1, -1):
        if place == 0 or (turns[place].speaker is Speaker.USER):
            yield place


def _last_exchange(turns: Sequence[Turn]) -> int:
    return len(turns) - next(_exchange_starts(turns), 0)


def _cost(turns: Sequence[Turn], enough: int, counter: TokenCounter) -> int:
    """Counts the tokens of turns, newest first; stops once they are more than enough."""
    cost = 0
    for turn in reversed(turns):
        if cost > enough:
            break
        cost += count_up_to(turn.text, enough - cost, counter) + TURN_MARGIN_TOKENS
    return cost


def _part(turns: Sequence[Turn], budget: int, counter: TokenCounter) -> Fitted:
    """What fits of the newest exchange, which does not fit whole."""
    start, used = len(turns), 0
    while start and used + (cost := _cost(turns[start - 1 : start], budget - used, counter)) <= budget:
        start, used = start - 1, used + cost
    if start < len(turns):
        return Fitted(Conversation(tuple(turns[start:])), len(turns) - start, start, 0, used)
    cut = _cut(turns[-1].text, budget - TURN_MARGIN_TOKENS, counter) if turns else ""
    if not cut:
        return Fitted(NOTHING_SAID, 0, len(turns), 0, 0)
    tokens = counter.count(cut) + TURN_MARGIN_TOKENS
    return Fitted(Conversation((replace(turns[-1], text=cut),)), 1, len(turns) - 1, 0, tokens)


def _cut(text: str, room: int, counter: TokenCounter) -> str:
    """Returns the beginning of a text with an ellipsis, at most `room` tokens; empty when nothing fits."""
    if room < 1:
        return ""
    beginning = _beginning(text[: room * LONGEST_TOKEN], room, counter)
    ends = [end for _, end in sentence_spans(beginning)][:-1]
    words = [place for place, character in enumerate(beginning) if character.isspace()]
    for end in [*reversed(ends), *reversed(words)]:
        cut = beginning[:end].rstrip() + _ELLIPSIS
        if end and cut != _ELLIPSIS and counter.count(cut) <= room:
            return cut
    return ""


def _beginning(text: str, room: int, counter: TokenCounter) -> str:
    """Returns the first tokens of a text, as many as there is room for."""
    end = 0
    for start, piece in pieces(text):
        offsets = counter.offsets(piece)[:room]
        room -= len(offsets)
        end = start + offsets[-1][1] if offsets else end
        if not room:
            break
    return text[:end]
