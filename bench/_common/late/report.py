"""The figures of `bench.late`, as tables and as a plot of quality against bytes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._common.late.curve import Summary
from bench._common.late.scoring import Scoring
from bench._common.late.variants import DEFAULT, Arm, Variant
from bench._common.plots import Line, Titles, plot_lines
from bench._common.tables import Cell, print_table

_COPIES = 2  # the record has one, from which a generation's is written


@dataclass(frozen=True, slots=True)
class Point:
    """One variant: what a passage costs and how good the order is."""

    label: str
    variant: Variant
    default: bool  # the coding that is served
    token_bytes: int
    tokens: float  # of a passage, mean
    one_copy: float  # bytes of a passage, mean
    stored: float  # the same on disk, record and generation
    quality: Summary  # its difference is to full precision

    @classmethod
    def of(cls, arm: Arm, tokens: float, quality: Summary) -> Point:
        """Counts the bytes of so many tokens a passage."""
        one = tokens * arm.coder.code_bytes
        variant = arm.variant
        served = variant == DEFAULT or variant.projection == "shipped"
        return cls(variant.label, variant, served, arm.coder.code_bytes, tokens, one, _COPIES * one, quality)


@dataclass(frozen=True, slots=True)
class Weighed:
    """One way to weigh a question's tokens."""

    name: str
    quality: Summary  # its difference is to the way that is served


@dataclass(frozen=True, slots=True)
class Counted:
    """What bytes were counted on; a passage is a chunk."""

    documents: int
    chunks: int


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run; nDCG@10 is a mean over sets."""

    questions: Mapping[str, int]
    passages: Counted
    hybrid: float  # before late interaction
    points: tuple[Point, ...]
    weighings: tuple[Weighed, ...]
    sets: Mapping[str, Mapping[str, float]]  # set -> variant -> nDCG@10 of the combined score
    scoring: Scoring | None  # None when the model ships without a projection


def print_report(report: Report) -> None:
    """Prints the tables."""
    passages = report.passages
    title = f"Bytes, mean of {passages.chunks:,} passages of {passages.documents:,} documents; * default"
    columns = ["variant", "a token", "tokens", "one copy", "both copies"]
    print_table(title, columns, [_bytes_row(point) for point in report.points])
    questions = f"{sum(report.questions.values()):,} questions of {len(report.questions)} sets"
    title = f"nDCG@10, {questions}; - full with its 95 % interval"
    columns = ["variant", "late", "combined", "- full", "from", "to"]
    rows: list[list[Cell]] = [[_name(point), *_quality(point.quality)] for point in report.points]
    print_table(title, columns, [*rows, ["hybrid alone", None, report.hybrid, None, None, None]], digits=4)
    columns = ["weights of query tokens", "late", "combined", "- IDF", "from", "to"]
    print_table("Default coding", columns, [[one.name, *_quality(one.quality)] for one in report.weighings], digits=4)
    if report.scoring is not None:
        _print_scoring(report.scoring)


def _bytes_row(point: Point) -> list[Cell]:
    return [_name(point), point.token_bytes, f"{point.tokens:.1f}", round(point.one_copy), round(point.stored)]


def _name(point: Point) -> str:
    return f"{point.label} *" if point.default else point.label


def _quality(quality: Summary) -> list[Cell]:
    difference = quality.difference
    return [quality.late, quality.combined, difference.mean, difference.low, difference.high]


def _print_scoring(scoring: Scoring) -> None:
    rows: list[list[Cell]] = [
        [name, times.count, times.p50_ms, times.p95_ms, times.max_ms]
        for name, times in (("index.late_scores", scoring.late_scores), ("stage rerank", scoring.stage))
    ]
    title = f"Scoring {scoring.candidates} of {scoring.chunks:,} passages from stored codes"
    print_table(title, ["", "questions", "p50 ms", "p95", "max"], rows)


def plot_report(path: Path, report: Report) -> None:
    """Draws nDCG@10 against the bytes of a passage, one line a coding."""
    points = report.points
    plain = [one for one in points if one.variant == Variant(one.variant.dim, one.variant.bits)]
    codings = dict.fromkeys(one.variant.coding for one in plain)
    lines = [_line(coding, [one for one in plain if one.variant.coding == coding]) for coding in codings]
    lines += [
        _line("rarer tokens only", [one for one in points if one.variant.least_weight]),
        _line("all tokens", [one for one in points if not one.variant.pooled]),
        _line("shipped", [one for one in points if one.variant.projection == "shipped"]),
        _level("full precision", points[0].quality.combined, points),
        _level("hybrid", report.hybrid, points),
    ]
    plot_lines(path, Titles("Late interaction", "bytes a passage", "nDCG@10"), lines, log_x=True)


def _line(label: str, points: Sequence[Point]) -> Line:
    ordered = sorted(points, key=lambda point: point.one_copy)
    return Line(label, [one.one_copy for one in ordered], [one.quality.combined for one in ordered])


def _level(label: str, value: float, points: Sequence[Point]) -> Line:
    ends = [min(one.one_copy for one in points), max(one.one_copy for one in points)]
    return Line(label, ends, [value, value], dashed=True)
