"""When an item is tried again: each attempt waits twice as long as the one before, with jitter, an hour at most."""

from __future__ import annotations

import random
from dataclasses import replace

from indexers.jobs.running.progress import ItemProgress
from indexers.jobs.spec import LimitsSpec
from indexers.jobs.state import ItemOutcome, ItemState

LONGEST_S = 3_600.0


def with_backoff(item: ItemProgress, limits: LimitsSpec) -> ItemOutcome:
    """Returns what becomes of the item; what the source asked for is waited at least."""
    outcome = item.result(limits.attempts)
    if outcome.state is not ItemState.QUEUED:
        return outcome
    wait_s = min(limits.backoff_s * 2 ** (item.lease.attempt - 1), LONGEST_S)
    jittered = wait_s * random.uniform(0.5, 1.0)  # noqa: S311 - spreads retries, hides nothing
    return replace(outcome, retry_in_s=max(jittered, min(outcome.retry_in_s, LONGEST_S)))
