"""Which backend answers a request, why, what else could have, and how the answer came about: values for the ledger."""

from __future__ import annotations

import enum
from dataclasses import dataclass


class Priority(enum.IntEnum):
    """Who is served first while requests wait; the lower goes first."""

    INTERACTIVE = 0
    BATCH = 1
    BACKGROUND = 2


@dataclass(frozen=True, slots=True)
class Candidate:
    """A backend as the router saw it."""

    backend: str
    excluded: str = ""  # why it may not answer: `rule:NAME`, `window`, `cost`, `unhealthy`; empty when it may
    score: float = 0.0  # weighted sum; the least wins
    first_token_ms: float = 0.0  # predicted, the wait included
    total_ms: float = 0.0  # predicted, to the last token
    cost: float = 0.0  # predicted, in the prices' currency
    context_tokens: int = 0  # that it would get


@dataclass(frozen=True, slots=True)
class RouteReport:
    """What the router decided."""

    backend: str  # the first choice
    reason: str  # `named` by the request or the settings, `only` one allowed, or what weighed most: `latency`, `cost`,
    # `capability`
    complexity: float = 0.0  # of the question, in [0, 1]
    rules: tuple[str, ...] = ()  # that applied
    candidates: tuple[Candidate, ...] = ()  # best first, those excluded last


class Outcome(enum.Enum):
    """What became of one request to a backend's server."""

    ANSWERED = "answered"
    FAILED = "failed"  # before the first token
    TIMEOUT = "timeout"  # no first token in time
    CUT = "cut"  # after the first token
    LOST = "lost"  # another one was faster; cancelled
    REFUSED = "refused"  # no room in its queue, or none in time
    LEFT = "left"  # the caller left


@dataclass(frozen=True, slots=True)
class Attempt:
    """One request to a backend's server."""

    backend: str
    server: int  # which of its servers, from 0
    outcome: Outcome
    hedge: bool  # whether it was sent besides another
    queue_ns: int
    first_token_ns: int  # from sending to the first token, or to the end when there was none


@dataclass(frozen=True, slots=True)
class GenerationReport:
    """How an answer came about."""

    backend: str
    queue_ns: int = 0  # waited for the server that answered
    first_token_ns: int = 0  # from sending the request that was answered to its first token
    token_ns: int = 0  # mean time between later tokens
    total_ns: int = 0  # from asking for a backend to the end of the answer
    attempts: tuple[Attempt, ...] = ()  # all of them, in the order in which they were sent
    passages: tuple[int, ...] = ()  # citation numbers in the order in which the model read them


@dataclass(frozen=True, slots=True)
class ConversationReport:
    """What became of the earlier turns."""

    turns: int = 0  # that came with the request
    kept: int = 0  # that the model read
    dropped: int = 0  # the oldest, for which there was no room
    summarised: int = 0  # of those dropped, the ones that a summary stands for
    rewritten: str = ""  # the question as it was searched; empty when it was searched as it is
    by: str = ""  # what rewrote it: `rules`, or a backend's name
