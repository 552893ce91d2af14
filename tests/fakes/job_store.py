"""The job store of one file, kept in memory, with a clock that tests move and a count of what is asked of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from indexers.jobs.sqlite.store import SqliteJobStore
from indexers.jobs.state import Run

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


class MemoryJobStore(SqliteJobStore):
    """Nothing outlives it, so tests need not close it."""

    def __init__(self) -> None:
        """Its clock stands at `EPOCH`."""
        self.moment = EPOCH
        self.reads = 0  # of runs, so that tests see how often somebody polls
        super().__init__(Path(":memory:"), self._seconds)

    def pass_s(self, seconds: float) -> None:
        """Moves the clock."""
        self.moment += timedelta(seconds=seconds)

    async def get_run(self, tenant: str, run_id: str) -> Run:
        """Returns a run, and counts that."""
        self.reads += 1
        return await super().get_run(tenant, run_id)

    def _seconds(self) -> float:
        return self.moment.timestamp()

    def __del__(self) -> None:
        """Ends the thread and frees the database."""
        self._thread.shutdown(wait=False)
        if self._connection is not None:
            self._connection.close()
