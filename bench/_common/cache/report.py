"""The tables and the plot of the replay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._common.cache.figures import ArmFigures
from bench._common.plots import Line, Titles, plot_lines
from bench._common.statistics import Quantiles
from bench._common.tables import Cell, print_table


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """The baseline at one threshold."""

    threshold: float
    hit_rate: float
    precision: float  # right hits among hits: false and stale ones both count against it
    false_share: float


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """All figures of a replay."""

    set_name: str
    seeds: Sequence[int]
    target: float  # share of false hits that the baseline was tuned to
    threshold: float
    requests: int
    prompt_tokens_per_s: float
    output_tokens_per_s: float
    question: Quantiles  # to encode one: in no figure of an arm
    arms: Sequence[ArmFigures]
    curve: Sequence[CurvePoint]


def print_replay(report: ReplayReport) -> None:
    """Prints the tables."""
    print_table(
        f"{report.set_name}: {report.requests:,} requests, seeds {', '.join(map(str, report.seeds))}",
        ("arm", "equal", "similar", "hit rate", "false", "% of hits", "95 % low", "high", "stale", "right"),
        [_hits(arm) for arm in report.arms],
    )
    print_table(
        "Hits in other words alone",
        (
            "arm",
            "served",
            "false",
            "% of them",
            "95 % low",
            "high",
            "labels",
            "disagreed",
            "labels, first",
            "requests, first",
        ),
        [_similar(arm) for arm in report.arms if arm.counted.similar or arm.learning],
    )
    speed = f"{report.prompt_tokens_per_s:g} prompt and {report.output_tokens_per_s:g} output tokens a second"
    print_table(
        f"Own time, ms, without the model's; the model at {speed}",
        (
            "arm",
            "hit p50",
            "p95",
            "miss p50",
            "p95",
            "calls",
            "saved",
            "model, s a request",
            "answers, KiB",
            "all, KiB",
        ),
        [_times(arm) for arm in report.arms],
    )
    print_table("To encode a question, ms", ("p50", "p95"), [(report.question.p50_ms, report.question.p95_ms)])
    ours = [arm for arm in report.arms if arm.learning]
    ended: list[list[Cell]] = [[arm.name, arm.ended.of, arm.ended.count] for arm in report.arms if arm.ended]
    print_table("Answers that the evidence ended", ("arm", "ended", "of them right still"), ended)
    reasons = dict.fromkeys(reason for arm in ours for reason in arm.reasons)
    rows: list[list[Cell]] = [[reason, *(arm.reasons.get(reason, 0) for arm in ours)] for reason in reasons]
    print_table("Why there was no hit", ("reason", *(arm.name for arm in ours)), rows)


def plot_replay(path: Path, report: ReplayReport) -> None:
    """Draws precision over hit rate: the baseline at every threshold, and each of our arms as a point."""
    titles = Titles(f"Right answers among hits, {report.set_name}", "hit rate", "share of hits that are right")
    curve = [point for point in report.curve if point.hit_rate]
    rates = [one.hit_rate for one in curve]
    lines = [
        Line("one threshold", rates, [one.precision for one in curve]),
        Line("old answers let pass", rates, [1.0 - one.false_share for one in curve], dashed=True),
    ]
    lines += [
        Line(arm.name, [arm.counted.hit_rate], [arm.counted.precision])
        for arm in report.arms
        if arm.counted.hit_rate and "fixed" not in arm.name
    ]
    plot_lines(path, titles, lines)


def _hits(arm: ArmFigures) -> list[Cell]:
    false = arm.counted.false_hits
    return [
        arm.name,
        arm.counted.equal,
        arm.counted.similar,
        arm.counted.hit_rate,
        false.count,
        *_percent(arm),
        arm.counted.stale,
        arm.counted.precision if false.of else None,
    ]


def _percent(arm: ArmFigures) -> list[Cell]:
    false = arm.counted.false_hits
    return [100 * false.value, 100 * false.low, 100 * false.high] if false.of else [None, None, None]


def _similar(arm: ArmFigures) -> list[Cell]:
    false, learning = arm.counted.false_similar, arm.learning
    share: list[Cell] = [100 * false.value, 100 * false.low, 100 * false.high] if false.of else [None, None, None]
    told: list[Cell] = [None, None, None, None]
    if learning is not None:
        told = [learning.labels, learning.errors, learning.labels_before_first, learning.requests_before_first]
    return [arm.name, arm.counted.similar, false.count, *share, *told]


def _times(arm: ArmFigures) -> list[Cell]:
    hits: list[Cell] = [arm.hits.p50_ms, arm.hits.p95_ms] if arm.hits.count else [None, None]
    answers = arm.memory_bytes.get("answers", arm.memory_bytes.get("vectors", 0))
    return [
        arm.name,
        *hits,
        arm.misses.p50_ms,
        arm.misses.p95_ms,
        arm.model_calls,
        arm.calls_saved,
        arm.model_s / max(1, arm.counted.requests),
        answers // 1024,
        sum(arm.memory_bytes.values()) // 1024,
    ]
