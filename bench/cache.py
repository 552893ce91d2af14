"""Measures the answer cache, in two parts.

`replay` puts the questions of seeded traces to the product's own request path in several arms, over one index whose
documents change meanwhile: no cache, equal questions alone, one fixed threshold (tuned on other seeds), and ours at
several bounds. A backend that knows the gold answers stands for the model, at a documented speed.

`latency` asks servers in other processes over gRPC for answers that they have: with the evidence checked by a search or
by a kept result, trusted, and from Redis, each in turn beside an echo of the same bytes.

    python -m bench.cache replay --data ../shared/data --set squad-sub --json bench/results/cache-squad.json
    python -m bench.cache latency ../shared/data/squad-sub --json bench/results/cache-latency.json
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench._common import options
from bench._common.beir import read_set
from bench._common.cache.latency import measure_latency
from bench._common.cache.replaying import Plan, replay_set
from bench._common.cache.report import plot_replay, print_replay
from bench._common.cache.times import print_latency
from bench._common.loops import run
from bench._common.results import plain, write_results
from bench._common.traces.events import Law
from retrieval.telemetry.log import configure_log


def main() -> None:
    """Runs the tool."""
    configure_log("warning", "console")
    arguments = _arguments()
    arguments.part(arguments)


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parts = made.add_subparsers(required=True, metavar="PART")
    shared = options.parser("")
    replayed = parts.add_parser("replay", parents=[shared], add_help=False, help="hits and errors on traces")
    replayed.set_defaults(part=_replay)
    replayed.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder of the handed sets")
    replayed.add_argument("--set", default="squad-sub", metavar="NAME", help="a set in it")
    replayed.add_argument("--seed", type=int, default=1, help="of the first trace")
    replayed.add_argument("--passes", type=int, default=5, metavar="N", help="traces, one after the other")
    replayed.add_argument("--requests", type=int, default=Law().requests, metavar="N", help="of each trace")
    replayed.add_argument("--rates", type=float, nargs="*", default=[0.005, 0.01, 0.02], help="bounds of our arms")
    replayed.add_argument("--target", type=float, default=0.01, help="false hits per hit that the baseline is tuned to")
    replayed.add_argument("--others", type=int, default=1_000, metavar="N", help="documents that no trace speaks of")
    timed = parts.add_parser("latency", parents=[shared], add_help=False, help="hits over gRPC beside an echo")
    timed.set_defaults(part=_latency)
    timed.add_argument("folder", type=Path, metavar="DIR", help="a set in BEIR's layout")
    timed.add_argument("--questions", type=int, default=60, metavar="N", help="that are asked, at most")
    timed.add_argument("--rounds", type=int, default=10, metavar="N", help="each there and back")
    return made.parse_args()


def _latency(arguments: argparse.Namespace) -> None:
    settings = options.settings(arguments, {})
    source = read_set(arguments.folder)
    report = run(measure_latency(source, arguments.questions, arguments.rounds, settings, arguments.cache))
    print_latency(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), settings)


def _replay(arguments: argparse.Namespace) -> None:
    settings = options.settings(arguments, {})
    plan = Plan(
        folder=arguments.data / arguments.set,
        seeds=range(arguments.seed, arguments.seed + arguments.passes),
        law=Law(requests=arguments.requests),
        rates=arguments.rates,
        target=arguments.target,
        others=arguments.others,
        encodings=arguments.cache,
    )
    report = run(replay_set(plan, settings))
    print_replay(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), settings)
    if outputs.plot_file:
        plot_replay(outputs.plot_file, report)


if __name__ == "__main__":
    main()
