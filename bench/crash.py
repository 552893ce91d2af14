"""Kills the server and the worker, and loses the queue, at random points of runs; compares the index with an oracle's.

Each round changes the source (documents added, changed, deleted), kills with SIGKILL after a random number of
documents, starts again, waits, runs once more, and checks ids, fingerprints and chunks. Rounds go on from each other.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path
from statistics import median

from bench._common import options
from bench._common.crash.world import Round, world
from bench._common.results import Json, write_results
from bench._common.tables import Cell, print_table, say


def main() -> None:
    """Runs the tool."""
    made = options.parser(__doc__)
    made.add_argument("--rounds", type=int, default=200, help="kills in all")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--redis", action="store_true", help="keep the queue in a Redis that holds nothing on disk")
    arguments = made.parse_args()
    with tempfile.TemporaryDirectory(prefix="headrace-crash-") as folder:
        rounds = asyncio.run(_rounds(Path(folder), arguments.seed, arguments.rounds, redis=arguments.redis))
    _print(rounds)
    if (path := options.outputs(arguments).json_file) is not None:
        write_results(path, {"crash": _figures(rounds)}, None)


async def _rounds(folder: Path, seed: int, count: int, *, redis: bool) -> list[Round]:
    with world(folder, seed, redis=redis) as opened:
        await opened.begin()
        done: list[Round] = []
        for number in range(count):
            done.append(await opened.round())
            say(f"{number + 1}/{count}: {done[-1]}")
        return done


def _figures(rounds: list[Round]) -> Json:
    return {
        "rounds": [{**asdict(one), "killed": list(one.killed)} for one in rounds],
        "wrong": 0,  # the first would have ended the tool
        "killed": dict(Counter("+".join(one.killed) for one in rounds)),
        "worst_recovery_s": max(one.recovery_s for one in rounds),
    }


def _print(rounds: list[Round]) -> None:
    rows: list[list[Cell]] = []
    for killed in sorted({one.killed for one in rounds}):
        done = [one for one in rounds if one.killed == killed]
        times = sorted(one.recovery_s for one in done)
        disturbed = sum(one.run_state != "RUN_STATE_SUCCEEDED" for one in done)
        rows.append(["+".join(killed), len(done), disturbed, 0, median(times), times[-1]])
    columns = ["lost", "times", "runs that did not end well", "indexes not the oracle's", "recovery s p50", "worst"]
    print_table("Killed with SIGKILL at random points", columns, rows, digits=1)


if __name__ == "__main__":
    main()
