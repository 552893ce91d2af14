"""The plots of the tools, drawn without a screen. matplotlib is imported here and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

mpl.use("Agg")

_COLOURS = (
    *("#1f6f8b", "#e07a3f", "#7a9e3b", "#7d5ba6", "#c94f5d", "#8c8c8c"),
    *("#3aa6a0", "#b8860b", "#5b3f2a", "#f2a7c3", "#a6cee3", "#222222"),
)
_BAR_SHARE = 0.8


@dataclass(frozen=True, slots=True)
class Titles:
    """What a plot and its axes are called."""

    title: str
    x: str
    y: str


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a plot."""

    label: str
    x: Sequence[float]
    y: Sequence[float]
    dashed: bool = False


def plot_bars(path: Path, titles: Titles, groups: Sequence[str], series: Mapping[str, Sequence[float]]) -> None:
    """Draws one group of bars a group, one bar a series."""
    figure, axes = _figure(titles, width=max(7.0, 1.1 * len(groups) + 2.0))
    width = _BAR_SHARE / max(1, len(series))
    for place, (label, values) in enumerate(series.items()):
        left = [group - _BAR_SHARE / 2 + width * (place + 0.5) for group in range(len(groups))]
        axes.bar(left, list(values), width=width, label=label, color=_COLOURS[place % len(_COLOURS)])
    axes.set_xticks(range(len(groups)), list(groups), rotation=20, ha="right")
    _finish(figure, axes, path, legend=len(series) > 1)


def plot_stack(path: Path, titles: Titles, bars: Sequence[str], parts: Mapping[str, Sequence[float]]) -> None:
    """Draws horizontal bars, each made of the same parts one after another."""
    figure, axes = _figure(titles, width=10.0, height=1.6 + 0.8 * len(bars))
    left = [0.0] * len(bars)
    for place, (label, values) in enumerate(parts.items()):
        axes.barh(list(bars), list(values), left=left, label=label, color=_COLOURS[place % len(_COLOURS)])
        left = [before + value for before, value in zip(left, values, strict=True)]
    axes.invert_yaxis()
    _finish(figure, axes, path, legend=True)


def plot_lines(path: Path, titles: Titles, lines: Sequence[Line], *, log_x: bool = False, marks: bool = True) -> None:
    """Draws lines over a common axis."""
    figure, axes = _figure(titles, width=9.0)
    for place, line in enumerate(lines):
        colour = _COLOURS[place % len(_COLOURS)]
        style = "--" if line.dashed else "-"
        mark = "o" if marks and not line.dashed else None
        axes.plot(list(line.x), list(line.y), style, label=line.label, color=colour, marker=mark, markersize=3)
    if log_x:
        axes.set_xscale("log")
    _finish(figure, axes, path, legend=len(lines) > 1)


def _figure(titles: Titles, width: float, height: float = 4.2) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width, height), dpi=140, layout="constrained")
    axes = figure.subplots()
    axes.set_title(titles.title, fontsize=11)
    axes.set_xlabel(titles.x)
    axes.set_ylabel(titles.y)
    axes.grid(visible=True, alpha=0.25)
    axes.set_axisbelow(True)
    return figure, axes


def _finish(figure: Figure, axes: Axes, path: Path, *, legend: bool) -> None:
    if legend:
        figure.legend(fontsize=8, loc="outside right center")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path)
