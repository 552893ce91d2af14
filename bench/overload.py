"""Asks for more answers than a model server can give, and measures how many come in time.

Three processes: a scripted model server of so many slots that queues what is beyond them, as vLLM does; the service;
and a load generator in open loop. The goodput is what counts: whole answers within their deadline. The other arm sends
every request on at once, so that they wait where nobody knows how long they may.

    python -m bench.overload --seconds 40 --json bench/results/overload.json
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass, replace
from pathlib import Path

from bench._common import options
from bench._common.generation.processes import counts_of
from bench._common.generation.script import Script
from bench._common.generation.serving import COLLECTION, fill
from bench._common.loops import run
from bench._common.overload.asking import Load, calls_from_child
from bench._common.overload.calls import LoadFigures, figures_of
from bench._common.overload.serving import ARMS, serving
from bench._common.plots import Line, Titles, plot_lines
from bench._common.results import plain, write_results
from bench._common.tables import Cell, print_table, say

_CALIBRATION_S = 15.0
_CALIBRATION_SHARE = 0.2  # of the capacity that the script alone would have


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run."""

    script: dict[str, int | float]
    deadline_s: float
    capacity: float  # answers a second
    arms: dict[str, dict[str, LoadFigures]]  # by the load, as a multiple of the capacity
    goodput_share: dict[str, float]  # at the highest load, of the arm's best


def main() -> None:
    """Runs the tool."""
    made = options.parser(__doc__)
    Script.add_options(made)
    made.set_defaults(slots=16, prompt_ms_per_1k=200.0, tokens=75, spread=0.3)
    made.add_argument("--loads", type=float, nargs="+", default=[1.0, 2.0, 4.0], metavar="X", help="of the capacity")
    made.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    made.add_argument("--seconds", type=float, default=40.0, metavar="S", help="that are counted, at each load")
    made.add_argument("--warm-s", type=float, default=20.0, metavar="S", help="before that")
    made.add_argument("--deadline-s", type=float, default=6.0, metavar="S", help="of each call")
    arguments = made.parse_args()
    report = run(_measure(arguments))
    _print(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), None)
    if outputs.plot_file:
        _plot(outputs.plot_file, report)


async def _measure(arguments: argparse.Namespace) -> Report:
    script, folder = Script.of(arguments), arguments.cache / "overload"
    await fill(folder)
    capacity = await _capacity(arguments, script, folder)
    say(f"the capacity is {capacity:.1f} answers/s")
    arms: dict[str, dict[str, LoadFigures]] = {arm: {} for arm in arguments.arms}
    for load in arguments.loads:
        for arm in arguments.arms:
            found = await _at(arguments, script, folder, arm, load * capacity)
            say(f"{arm} at {load:g}x: goodput {found.goodput:.2f}/s, {found.refused} refused, {found.missed} missed")
            arms[arm][f"{load:g}"] = found
    return Report(
        script={name: getattr(script, name) for name in Script.__dataclass_fields__},
        deadline_s=arguments.deadline_s,
        capacity=capacity,
        arms=arms,
        goodput_share={arm: goodput_share(found) for arm, found in arms.items()},
    )


def goodput_share(found: dict[str, LoadFigures]) -> float:
    """Returns the goodput at the highest load as a share of the best; not a number when nothing came in time."""
    best = max(one.goodput for one in found.values())
    highest = max(found.values(), key=lambda one: one.rate)
    return highest.goodput / best if best else math.nan


async def _capacity(arguments: argparse.Namespace, script: Script, folder: Path) -> float:
    """Measures how long an answer keeps a slot on an idle server, and so how many there can be in a second."""
    alone = 1e3 * script.slots / (script.token_ms * script.tokens)
    async with serving(folder, "adaptive", script, arguments.deadline_s) as (address, model):
        load = Load(address, COLLECTION, _CALIBRATION_SHARE * alone, _CALIBRATION_S, arguments.deadline_s)
        await calls_from_child(load)
        counts = counts_of(model)
    return script.slots / (counts.held_s / counts.answered)


async def _at(arguments: argparse.Namespace, script: Script, folder: Path, arm: str, rate: float) -> LoadFigures:
    seconds = arguments.warm_s + arguments.seconds
    async with serving(folder, arm, script, arguments.deadline_s) as (address, model):
        calls = await calls_from_child(Load(address, COLLECTION, rate, seconds, arguments.deadline_s))
        counts = counts_of(model)
    found = figures_of(calls, rate, arguments.deadline_s, arguments.warm_s, arguments.seconds)
    return replace(found, most_inside=counts.most_inside, wasted=counts.left)


def _print(report: Report) -> None:
    found = [(arm, load, one) for arm, loads in report.arms.items() for load, one in loads.items()]
    ends: list[list[Cell]] = [
        [f"{arm} {load}x", one.calls, one.goodput, one.refused, one.missed, one.overran, one.wasted]
        for arm, load, one in found
    ]
    columns = ["load", "calls", "goodput/s", "refused", "missed", "> 105 %", "wasted"]
    print_table(f"Answers within {report.deadline_s:g} s, capacity {report.capacity:.1f}/s", columns, ends, digits=2)
    times: list[list[Cell]] = [
        [f"{arm} {load}x", *(each for of in (one.answered, one.queued, one.refusal) for each in (of.p50_ms, of.p99_ms))]
        for arm, load, one in found
    ]
    columns = ["load", "answer p50", "p99", "queue p50", "p99", "refusal p50", "p99"]
    print_table("Times, ms", columns, times, digits=0)
    shares: list[list[Cell]] = [[arm, share] for arm, share in report.goodput_share.items()]
    print_table("Goodput at the highest load", ["arm", "share of the best"], shares)


def _plot(path: Path, report: Report) -> None:
    lines = [
        Line(arm, [float(load) for load in found], [one.goodput / report.capacity for one in found.values()])
        for arm, found in report.arms.items()
    ]
    plot_lines(path, Titles("Goodput under overload", "load, of the capacity", "goodput, of the capacity"), lines)


if __name__ == "__main__":
    main()
