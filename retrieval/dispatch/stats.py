"""What is shown of each server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retrieval.dispatch.breaker import BreakerState
from retrieval.route import Outcome


@dataclass(frozen=True, slots=True)
class EndpointStats:
    """One server of a backend, now and of late; the counts are since the start."""

    backend: str
    server: int
    limit: int  # requests that it gets at once
    running: int
    waiting: int
    breaker: BreakerState
    ejected: bool  # whether it is left out while others of its backend can answer
    attempts: Mapping[Outcome, int]  # every outcome, ended ones only
    hedges: int  # sent besides another
    retries: int  # sent after another had failed
    first_token_p50_ns: int  # 0 when nothing is known of late, like those below
    first_token_p95_ns: int
    token_p50_ns: int
