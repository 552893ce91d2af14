"""How long a run will still take, told from how fast its items went so far."""

from __future__ import annotations

from datetime import datetime

from indexers.jobs.state import ItemState, Run, RunState

_LEFT = (ItemState.QUEUED, ItemState.LEASED)


def items_done(run: Run) -> tuple[int, int]:
    """Returns how many items of the run have ended, and how many are known so far."""
    total = sum(run.items.values())
    return total - sum(run.items.get(state, 0) for state in _LEFT), total


def remaining_s(run: Run, now: datetime) -> float | None:
    """Returns the seconds until the end; None before the source is listed to its end, and when the run has ended."""
    done, total = items_done(run)
    if run.state is not RunState.RUNNING or not run.scanned or not done or run.started_at is None:
        return None
    spent_s = max(0.0, (now - run.started_at).total_seconds())
    return spent_s * (total - done) / done
