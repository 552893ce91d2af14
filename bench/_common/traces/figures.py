"""What a trace looks like in figures."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench._common.traces.events import Ask, Kind, Trace, Update


@dataclass(frozen=True, slots=True)
class Figures:
    """Counts and shares of one trace."""

    requests: int
    conversations: int
    unique_texts: int
    unique_questions: int  # look-alikes are questions of their own
    kinds: Mapping[str, float]  # share of the requests
    exact_reusable: float  # share whose text was asked before, with the same answer version: what exact keys can save
    reusable: float  # share whose question was asked before, with the same answer version: what anything can save
    zipf: float  # fitted exponent over the questions that the law draws, look-alikes counted for what they resemble
    writes: Mapping[str, int]
    changed_questions: int  # answers that writes changed, over the trace


def figures_of(trace: Trace) -> Figures:
    """Returns the figures of a trace."""
    asks = list(trace.asks())
    kinds = Counter(ask.kind for ask in asks)
    drawn = Counter(ask.question_id.partition("~")[0] for ask in asks if ask.kind is not Kind.NEW)
    writes = [event for event in trace.events if not isinstance(event, Ask)]
    return Figures(
        requests=len(asks),
        conversations=len({ask.conversation for ask in asks}),
        unique_texts=len({ask.text for ask in asks}),
        unique_questions=len({ask.question_id for ask in asks}),
        kinds={kind.value: kinds[kind] / max(1, len(asks)) for kind in Kind},
        exact_reusable=_repeated([(ask.text, ask.answer_version) for ask in asks]),
        reusable=_repeated([(ask.question_id, ask.answer_version) for ask in asks]),
        zipf=fit_zipf(sorted(drawn.values(), reverse=True)),
        writes=Counter(_name(event) for event in writes),
        changed_questions=sum(len(event.questions) for event in writes),
    )


def fit_zipf(counts: Sequence[int]) -> float:
    """Returns the exponent s that makes counts, falling, most likely under p(rank) ~ rank^-s over these ranks.

    Maximum likelihood by golden-section search between 0 and 4. Ranks come from the counts themselves and end with
    the last key that was drawn, so a trace much shorter than its population is fitted a little too flat.
    """
    logs = [math.log(rank) for rank in range(1, len(counts) + 1)]
    weighted, total = sum(count * log for count, log in zip(counts, logs, strict=True)), sum(counts)

    def loss(s: float) -> float:
        return s * weighted + total * math.log(sum(math.exp(-s * log) for log in logs) or 1.0)

    low, high, ratio = 0.0, 4.0, (math.sqrt(5) - 1) / 2
    while high - low > 1e-4:
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        if loss(left) < loss(right):
            high = right
        else:
            low = left
    return (low + high) / 2


def _repeated(keys: Sequence[tuple[str, int]]) -> float:
    return 1 - len(set(keys)) / max(1, len(keys))


def _name(event: object) -> str:
    return f"update, {event.what.value}" if isinstance(event, Update) else type(event).__name__.lower()
