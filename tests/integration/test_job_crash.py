"""Server, worker and queue are killed in the middle of runs: the index ends as the source is, every time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench._common.crash.world import world

ROUNDS = 10  # of each store


@pytest.mark.parametrize("store", ["sqlite", "redis"])
async def test_killed_processes_leave_the_index_of_a_run_that_was_not_disturbed(tmp_path: Path, store: str) -> None:
    """After SIGKILL at a seeded random point, a restart and one more run, ids, hashes and chunks are the oracle's.

    The queue is killed as well, and forgets everything: no document and no deletion is lost with it (case VEC-15).
    """
    with world(tmp_path, seed=7, redis=store == "redis") as opened:
        await opened.begin()
        for _ in range(ROUNDS):
            await opened.round()
