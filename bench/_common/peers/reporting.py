"""Shows what `bench.peers` found: tables of speed and quality, the targets, and the plot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bench._common.metrics import NDCG_CUT
from bench._common.peers.arms import OURS, REFERENCE
from bench._common.peers.fast import NAME as FASTEMBED
from bench._common.peers.figures import ArmFigures
from bench._common.peers.quality import Judged
from bench._common.plots import Titles, plot_bars
from bench._common.tables import Cell, print_table

PAIRS, EQUAL_PAIRS = "pairs, mixed lengths", "pairs, equal lengths"
TEXTS, EQUAL_TEXTS = "passages, mixed lengths", "passages, equal lengths"
_TARGETS: Mapping[str, Mapping[str, float]] = {
    PAIRS: {REFERENCE: 4.0, FASTEMBED: 2.5},
    EQUAL_PAIRS: {REFERENCE: 2.5, FASTEMBED: 1.5},
}
_NDCG_SHARE = 0.995


@dataclass(frozen=True, slots=True)
class Table:
    """The figures of one kind of work."""

    tasks: int
    padding: Mapping[str, float]  # by set: tokens of a batch padded to its longest text, over the tokens in it
    arms: Mapping[str, ArmFigures]


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run."""

    tables: Mapping[str, Table]
    judged: Judged | None  # None without fp32
    missing: Mapping[str, str]  # arms that were left out, with the reason


def print_report(report: Report) -> None:
    """Prints every table, then the targets, then what is missing."""
    for name, table in report.tables.items():
        _print_table(name, table)
    for name, targets in _TARGETS.items():
        for arm, target in targets.items():
            if name in report.tables and arm in report.tables[name].arms:
                _print_target(f"{name}: times ours, {arm}", report.tables[name].arms[arm].ratio.value, target)
    if report.judged:
        _print_judged(report.judged)
    for arm, reason in report.missing.items():
        print(f"{arm} is left out: {reason}")


def plot_report(path: Path, report: Report) -> None:
    """Draws how many times our time each arm takes, one group of bars a table."""
    arms = dict.fromkeys(arm for table in report.tables.values() for arm in table.arms)
    series = {arm: [_ratio(table, arm) for table in report.tables.values()] for arm in arms}
    plot_bars(path, Titles(f"Time of the same work; {OURS} is 1", "", "times ours"), list(report.tables), series)


def _print_table(name: str, table: Table) -> None:
    padding = ", ".join(f"{factor:.2f} ({of_set})" for of_set, factor in table.padding.items())
    rows: list[list[Cell]] = [
        [arm, one.weights, one.p50_ms, one.ratio.value, f"{one.ratio.low:.2f} to {one.ratio.high:.2f}"]
        for arm, one in table.arms.items()
    ]
    title = f"{name}: {table.tasks} questions\nPadding costs {padding} times the tokens"
    print_table(title, ["arm", "weights", "p50 ms", "times ours", "95 %"], rows, digits=2)
    rows = [[arm, one.ndcg, one.agreement, one.lowest] for arm, one in table.arms.items()]
    print_table("Quality, against fp32", ["arm", f"nDCG@{NDCG_CUT}", "agreement", "lowest"], rows, digits=4)


def _print_judged(judged: Judged) -> None:
    between = judged.difference
    print(
        f"nDCG@{NDCG_CUT} on {judged.questions} questions: {OURS} {judged.ours:.4f}, fp32 {judged.fp32:.4f}, "
        f"difference {between.mean:+.4f} ({between.low:+.4f} to {between.high:+.4f})"
    )
    if judged.fp32:
        _print_target(f"nDCG@{NDCG_CUT} over that of fp32", judged.ours / judged.fp32, _NDCG_SHARE)


def _print_target(what: str, reached: float, target: float) -> None:
    print(f"{'reached' if reached >= target else 'MISSED'}: {what}: {reached:.3f}, target {target}")


def _ratio(table: Table, arm: str) -> float:
    return table.arms[arm].ratio.value if arm in table.arms else 0.0
