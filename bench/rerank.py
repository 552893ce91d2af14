"""Measures anytime reranking: nDCG@10 and the overlap with the full order, against tokens scored and milliseconds.

Candidates come through the request path, late interaction included when the encoder has token vectors, down to a depth
of 50. The cross-encoder scores them all once; its logits are kept between runs, and everything else is replayed on them
with the product's own rule. The rule is learned from the train questions and judged on the test questions:

- fixed depths of 5, 10, 20, 30 and 50 against anytime over a sweep of the tolerance;
- a confidence gate, by the lead of the best candidate;
- at budgets of 100, 250, 500 and 1,000 ms a question, anytime against the fixed depth that is best for the budget;
- a simulated strong cross-encoder (the judgements with seeded noise), on more questions, since it costs no runs.

    python -m bench.rerank SET SET SET --model DIR --json bench/results/rerank.json

A model's folder holds model.onnx, config.json and tokenizer.json.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from bench._common import options
from bench._common.beir import BeirSet, Split, read_set
from bench._common.engines import open_encoders, open_reranker
from bench._common.loops import run
from bench._common.plots import Line, Titles, plot_lines
from bench._common.rerank.figures import (
    TOP_K,
    Budget,
    Curve,
    Gated,
    Point,
    Speed,
    budgets,
    curve,
    gates,
    overlap_at,
    simulated,
    tokens_saved,
)
from bench._common.rerank.fitting import fit_rule
from bench._common.rerank.pools import Gathered, Gatherer, RerankPool
from bench._common.rerank.store import PairStore
from bench._common.results import plain, write_results
from bench._common.statistics import SEED
from bench._common.tables import Cell, print_table, say
from rerank.progress import Aim
from rerank.stopping import StopRule
from retrieval.settings import Settings
from retrieval.thresholds import Overrides, resolve


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run."""

    late: bool  # whether late interaction took part before the cross-encoder
    ns_per_token: float
    workers: int
    rule: StopRule  # learned from the train questions
    real: Curve
    sets: Mapping[str, Curve]
    budgets: Mapping[str, Budget]
    gates: Mapping[str, Gated]
    overlap_at_half: float
    simulated: Curve
    simulated_budgets: Mapping[str, Budget]
    simulated_times_fewer_tokens: float
    simulated_tolerance: str


def main() -> None:
    """Runs the tool."""
    arguments = _arguments()
    flags = {"index.kind": "exact", "rerank.limit_tokens": arguments.limit_tokens, "retrieval.max_top_k": 1000}
    settings = options.settings(arguments, {**flags, "rerank.model": str(arguments.model)})
    gathered, workers = run(_gather(arguments, settings))
    report = _report(gathered, settings, workers)
    _print(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), settings)
    if outputs.plot_file:
        _plot(outputs.plot_file, report)


def _arguments() -> argparse.Namespace:
    made = options.parser(__doc__)
    options.add_set_options(made, Split.ALL)
    made.add_argument("--model", type=Path, required=True, metavar="DIR", help="the cross-encoder")
    made.add_argument("--limit-tokens", type=int, default=128, metavar="N", help="of a pair")
    made.add_argument("--scored", type=int, default=50, metavar="N", help="questions of each set and split to score")
    made.add_argument(
        "--simulated", type=int, default=200, metavar="N", help="of each set and split for the simulation"
    )
    return made.parse_args()


async def _gather(arguments: argparse.Namespace, settings: Settings) -> tuple[Gathered, int]:
    alone = settings.model_copy(update={"rerank": settings.rerank.model_copy(update={"model": ""})})
    most = max(arguments.scored, arguments.simulated)
    sources = [_both_splits(read_set(folder, arguments.qrels), most) for folder in arguments.sets]
    async with open_encoders(alone, arguments.cache) as encoders:
        reranker = await open_reranker(settings, encoders)
        store = await asyncio.to_thread(PairStore, arguments.cache, reranker.revision)
        gatherer = Gatherer(alone, encoders, reranker, store)
        return await gatherer.gather(sources, arguments.scored), encoders.scheduler.stats().workers


def _both_splits(source: BeirSet, most: int) -> BeirSet:
    parts = [source.part(split, most).questions for split in (Split.TRAIN, Split.TEST)]
    return replace(source, questions=tuple(question for part in parts for question in part))


def _report(gathered: Gathered, settings: Settings, workers: int) -> Report:
    thresholds = resolve(settings, Overrides(top_k=TOP_K))
    weights = thresholds.mixture.weights(late_heard=gathered.late)
    tolerance, speed = thresholds.stop_rule.tolerance, Speed(gathered.ns_per_token, workers)
    train, test = _split(gathered.pools)
    aim = Aim(TOP_K, weights, fit_rule(train, TOP_K, tolerance))
    strong_train, strong_test = _split((*gathered.pools, *gathered.unscored))
    strong_train, strong_test = simulated(strong_train, SEED), simulated(strong_test, SEED + 1)
    strong_aim = Aim(TOP_K, weights, fit_rule(strong_train, TOP_K, tolerance))
    strong = curve(strong_test, strong_aim, speed)
    real = curve(test, aim, speed)
    times, at = tokens_saved(strong, 0.99)
    names = dict.fromkeys(pool.set_name for pool in test)
    return Report(
        late=gathered.late,
        ns_per_token=gathered.ns_per_token,
        workers=workers,
        rule=aim.rule,
        real=real,
        sets={name: curve([pool for pool in test if pool.set_name == name], aim, speed) for name in names},
        budgets=budgets(test, aim, speed),
        gates=gates(test, aim, speed),
        overlap_at_half=overlap_at(real, 0.5),
        simulated=strong,
        simulated_budgets=budgets(strong_test, strong_aim, speed),
        simulated_times_fewer_tokens=times,
        simulated_tolerance=at,
    )


def _split(pools: Sequence[RerankPool]) -> tuple[list[RerankPool], list[RerankPool]]:
    train, test = ([pool for pool in pools if pool.split is split] for split in (Split.TRAIN, Split.TEST))
    if not train or not test:
        raise SystemExit("the sets have no train or no test questions; give more sets, or raise --scored")
    return train, test


def _print(report: Report) -> None:
    before = "fusion and late interaction" if report.late else "fusion"
    say(f"before the cross-encoder: {before}; {report.ns_per_token / 1e6:.3f} ms a token, {report.workers} workers")
    _print_curve("Cross-encoder", report.real)
    _print_curve("Simulated strong cross-encoder", report.simulated)
    _print_gates(report.gates)
    _print_budgets("Budgets of time a question", report.budgets)
    _print_budgets("Budgets of time a question, simulated", report.simulated_budgets)
    say(f"overlap@10 at half of the tokens: {report.overlap_at_half:.3f} (target 0.9)")
    times, at = report.simulated_times_fewer_tokens, report.simulated_tolerance
    say(f"simulated: {times:.2f} times fewer tokens at 99 % of the full nDCG@10 (target 3; tolerance {at})")
    say("the rule, for headrace.toml:")
    for line in report.rule.lines:
        say("[[rerank.anytime.lines]]")
        for name, value in asdict(line).items():
            shown = [round(one, 2) for one in value] if name == "margins" else round(value, 2)
            say(f"{name} = {shown}")


def _print_gates(found: Mapping[str, Gated]) -> None:
    rows: list[list[Cell]] = [
        [margin, one.skipped, one.token_share, one.difference.mean, one.difference.low, one.difference.high]
        for margin, one in found.items()
    ]
    columns = ["lead", "skipped", "token share", "nDCG@10 change", "95 % from", "to"]
    print_table("Confidence gate", columns, rows)


def _print_budgets(title: str, found: Mapping[str, Budget]) -> None:
    rows: list[list[Cell]] = [
        [
            *(budget_ms, one.anytime.ndcg, one.anytime.pairs, one.best_depth, one.best_fixed.ndcg),
            *(one.difference.mean, one.difference.low, one.difference.high, "yes" if one.not_worse else "no"),
        ]
        for budget_ms, one in found.items()
    ]
    columns = ["ms", "anytime", "pairs", "best depth", "its nDCG@10", "difference", "95 % from", "to", "not worse"]
    print_table(title, columns, rows)


def _print_curve(title: str, found: Curve) -> None:
    rows: list[list[Cell]] = [["before", "", found.before, *([None] * 6)]]
    rows += [["depth", depth, *_cells(point)] for depth, point in found.fixed.items()]
    rows += [["tolerance", tolerance, *_cells(point)] for tolerance, point in found.anytime.items()]
    columns = ["", "", "nDCG@10", "tokens", "share", "pairs", "ms", "overlap@10", "settled"]
    print_table(f"{title}, {found.questions} test questions", columns, rows)


def _cells(point: Point) -> list[Cell]:
    return [point.ndcg, round(point.tokens), point.token_share, point.pairs, point.ms, point.overlap, point.settled]


def _plot(path: Path, report: Report) -> None:
    lines = []
    for name, found in (("", report.real), ("simulated, ", report.simulated)):
        for kind, points in (("anytime", found.anytime), ("fixed depth", found.fixed)):
            ordered = sorted(points.values(), key=lambda point: point.tokens)
            lines.append(
                Line(f"{name}{kind}", [one.tokens for one in ordered], [one.ndcg for one in ordered], kind != "anytime")
            )
    plot_lines(path, Titles("Anytime reranking", "tokens scored a question", "nDCG@10"), lines)


if __name__ == "__main__":
    main()
