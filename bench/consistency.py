"""Takes random steps over two tenants, several replicas and a failing Redis, and counts replies that are old or wrong.

Replicas are pipelines with caches of their own over one index and one real Redis behind a proxy that delays, cuts and
garbles. Questions, equal and in other words, go on while documents are added, changed, moved and deleted, collections
are made anew, replicas restart, Redis loses its values or gets old ones back, and values are exchanged under their
keys. Every figure in every document is unique, so each answer tells whose it is and which version it was read from.

    python -m bench.consistency --steps 100000 --seed 1 --json bench/results/consistency.json
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from bench._common import options
from bench._common.consistency.embedded import embedded_catalog
from bench._common.consistency.simulation import Plan, Report, simulation
from bench._common.loops import run
from bench._common.results import plain, write_results
from bench._common.tables import print_table
from indexers.options import ShardKind
from retrieval.telemetry.log import configure_log


def main() -> None:
    """Runs the tool; fails when anything was violated."""
    arguments = _arguments()
    configure_log("error", "console")  # Redis comes and goes hundreds of times
    report = run(_simulate(arguments))
    _print(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), None)
    if report.violations:
        sys.exit(1)


def _arguments() -> argparse.Namespace:
    made = options.parser(__doc__)
    made.add_argument("--steps", type=int, default=100_000, metavar="N")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--replicas", type=int, default=3, metavar="N")
    made.add_argument("--trust-ms", type=int, default=0, help="staleness that the settings allow")
    made.add_argument("--slow-ms", type=float, default=0.0, help="what every sixteenth answer takes")
    made.add_argument("--builds", type=float, default=0.0, help="weight of builds, where a question weighs 80")
    made.add_argument("--kind", choices=[kind.value for kind in ShardKind], default=ShardKind.EXACT.value)
    made.add_argument("--folder", type=Path, metavar="DIR", help="where the collections are; a temporary folder")
    return made.parse_args()


async def _simulate(arguments: argparse.Namespace) -> Report:
    slow_s, builds = arguments.slow_ms / 1e3, arguments.builds
    plan = Plan(arguments.steps, arguments.seed, arguments.trust_ms, slow_s, builds)
    with tempfile.TemporaryDirectory(prefix="headrace-bench-", dir=arguments.folder) as folder:
        async with (
            embedded_catalog(Path(folder) / "data", ShardKind(arguments.kind)) as catalog,
            simulation(plan, [catalog] * arguments.replicas) as made,
        ):
            return await made.run()


def _print(report: Report) -> None:
    print_table("Steps", ["kind", "count"], list(report.kinds.items()))
    print_table("Caches", ["cache and tier", "count"], list(report.hits.items()))
    print_table("Calls without a reply", ["why", "count"], list(report.outcomes.items()))
    print_table("Violations", ["kind", "count"], list(report.violations.items()) or [["none", 0]])
    print_table("Run", ["steps", "seconds", "steps/s", "answers made"], [_run_row(report)], digits=1)
    for example in report.examples:
        print(example)


def _run_row(report: Report) -> list[int | float]:
    return [report.steps, report.seconds, report.steps_per_s, report.answers_made]


if __name__ == "__main__":
    main()
