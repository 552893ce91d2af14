"""Server and worker are killed in the middle of runs, and the queue is lost: the index ends as the source is."""

from __future__ import annotations

from pathlib import Path

from bench._common.crash.world import world

ROUNDS = 20


async def test_killed_processes_leave_the_index_of_a_run_that_was_not_disturbed(tmp_path: Path) -> None:
    """After SIGKILL at a seeded random point, a restart and one more run, ids, hashes and chunks are the oracle's.

    A queue that is lost with its file loses no document and no deletion (case VEC-15).
    """
    with world(tmp_path, seed=7) as opened:
        await opened.begin()
        for _ in range(ROUNDS):
            await opened.round()
