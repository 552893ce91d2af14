"""Measures the token scheduler against bare sessions: throughput, online beside bulk, overhead, idling, memory.

What is compared runs in one process in turn (ABBA); the ratios within a run are what counts. The targets:

    throughput     at least 0.95 of the bare sessions' tokens a second, with more callers than threads
    beside bulk    p95 of a query's embedding at most twice its idle value and one piece
    overhead       below 0.15 ms an embedding, beyond tokenizing and the run of the session
    idle           below 1 % of a core, the whole server
    memory         after 5,000 calls within 10 % of that after 500
"""

from __future__ import annotations

import argparse
import asyncio
from dataclasses import dataclass
from pathlib import Path

from bench._common import options
from bench._common.encode.beside_bulk import BesideBulk, measure_beside_bulk
from bench._common.encode.idle import Idle, measure_idle
from bench._common.encode.memory import Memory, measure_memory
from bench._common.encode.overhead import Overhead, measure_overhead
from bench._common.encode.throughput import Throughput, measure_throughput
from bench._common.encode.work import Parts
from bench._common.engines import open_encoders
from bench._common.loops import run
from bench._common.plots import Titles, plot_bars
from bench._common.results import plain, write_results
from bench._common.tables import Cell, print_table, say
from encoders.curve import CostCurve
from retrieval.settings import Settings


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run."""

    model: str
    curve: CostCurve | None
    throughput: Throughput
    beside_bulk: BesideBulk
    overhead: Overhead
    idle: Idle
    memory: Memory


def main() -> None:
    """Runs the tool."""
    made = options.parser(__doc__)
    made.add_argument("--texts", type=int, default=400, metavar="N", help="texts of a throughput arm")
    made.add_argument("--rounds", type=int, default=4, metavar="N", help="of the throughput arms, each ABBA")
    made.add_argument("--seconds", type=float, default=15.0, metavar="S", help="of each phase beside bulk, and idle")
    made.add_argument("--embeddings", type=int, default=1_000, metavar="N", help="for the overhead")
    made.add_argument("--calls", type=int, default=5_000, metavar="N", help="for the memory")
    arguments = made.parse_args()
    settings = options.settings(arguments, {})
    report = run(_measure(arguments, settings))
    _print(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), settings)
    if outputs.plot_file:
        _plot(outputs.plot_file, report)


async def _measure(arguments: argparse.Namespace, settings: Settings) -> Report:
    async with open_encoders(settings, arguments.cache) as encoders:
        parts = Parts.of(encoders.scheduler, encoders.dense)
        calibration = encoders.dense.calibration
        curve = await asyncio.to_thread(calibration.measure) if calibration else None
        say("throughput")
        throughput = await measure_throughput(parts, arguments.texts, arguments.rounds)
        say("queries beside a bulk job")
        beside = await measure_beside_bulk(parts, arguments.seconds)
        say("overhead")
        overhead = await measure_overhead(parts, arguments.embeddings)
        say("memory")
        memory = await measure_memory(parts, arguments.calls)
    say("idle server")
    idle = await asyncio.to_thread(measure_idle, arguments.seconds)
    return Report(settings.encoders.dense.model, curve, throughput, beside, overhead, idle, memory)


def _print(report: Report) -> None:
    rate, beside, cost = report.throughput, report.beside_bulk, report.overhead
    rows: list[list[Cell]] = [
        ["throughput behind the scheduler, share of bare", f"{rate.share:.3f}", "at least 0.95"],
        ["p95 of a query, idle", f"{beside.idle.p95_ms:.1f} ms", ""],
        ["p95 of a query beside bulk", f"{beside.beside_bulk.p95_ms:.1f} ms", f"at most {beside.limit_ms:.1f} ms"],
        ["a piece of bulk", f"{beside.piece_ms:.1f} ms", ""],
        ["bulk beside queries, share of alone", f"{_share(beside):.2f}", "above 0"],
        ["framework cost of an embedding", f"{cost.framework_ms:.3f} ms", "below 0.15 ms"],
        ["embedding, scheduled less bare", f"{cost.difference_ms:.3f} ms", ""],
        ["idle server, share of a core", f"{report.idle.core_share:.4f}", "below 0.01"],
        [f"memory after {report.memory.calls:,} calls", f"{100 * report.memory.growth:+.1f} %", "within 10 %"],
    ]
    title = f"{report.model}: {rate.threads} threads, {rate.scheduled_tokens_per_s:,.0f} tokens a second"
    print_table(title, ["", "measured", "target"], rows)
    if report.curve:
        costs: list[list[Cell]] = [
            [one.tokens, one.texts, one.ns_per_token / 1e3] for one in (*report.curve.single, *report.curve.batched)
        ]
        policy = report.curve.policy
        cut = f"batches of {policy.budget_tokens} tokens" if policy.batches else "one text a run"
        print_table(f"Cost of a token: {cut}", ["tokens", "texts", "µs a token"], costs, digits=1)


def _share(beside: BesideBulk) -> float:
    return beside.bulk_beside_tokens_per_s / max(1.0, beside.bulk_alone_tokens_per_s)


def _plot(path: Path, report: Report) -> None:
    idle, bulk = report.beside_bulk.idle, report.beside_bulk.beside_bulk
    series = {
        "idle": [idle.p50_ms, idle.p95_ms, idle.p99_ms],
        "beside a bulk job": [bulk.p50_ms, bulk.p95_ms, bulk.p99_ms],
    }
    plot_bars(path, Titles("Embedding a query", "", "ms"), ["p50", "p95", "p99"], series)


if __name__ == "__main__":
    main()
