"""The live progress of a run in a terminal: items, documents by state, rates, failures by kind, remaining time."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from retrieval.cli.jobs_shown import counts_text
from retrieval.cli.output import console

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_LEFT = ("queued", "leased")
_WINDOW_S = 10.0


class RunProgress:
    """A bar over items; rates are those of the last seconds."""

    def __init__(self, progress: Progress, task: TaskID, clock: Callable[[], float] = time.monotonic) -> None:
        self._progress = progress
        self._task = task
        self._clock = clock
        self._past: list[tuple[float, int]] = []  # moments and tokens

    def advanced(self, run: dict[str, Any]) -> None:
        """Takes the run as it stands."""
        total = sum(run["items"].values())
        done = total - sum(run["items"].get(state, 0) for state in _LEFT)
        known = total if run["scanned"] else None  # a bar without an end, until the source is listed
        state = progress_text(run, self._rate(run["tokens"]))
        self._progress.update(self._task, total=known, completed=done, state=state)

    def _rate(self, tokens: int) -> float:
        now = self._clock()
        self._past = [(at, count) for at, count in self._past if now - at <= _WINDOW_S] + [(now, tokens)]
        begun, first = self._past[0]
        return (tokens - first) / (now - begun) if now > begun else 0.0


def progress_text(run: dict[str, Any], tokens_per_s: float) -> str:
    """Returns what stands beside the bar."""
    if run["state"] == "queued":
        return "waits for a worker"
    parts = [f"documents: {counts_text(run['documents'])}", f"{run['chunks']:,} chunks"]
    if tokens_per_s > 0:
        parts.append(f"{tokens_per_s:,.0f} tokens/s")
    if run["failures"]:
        parts.append(f"failures: {counts_text(run['failures'])}")
    if run["remaining_s"] is not None:
        parts.append(f"{_duration(run['remaining_s'])} left")
    if run["cancel_requested"]:
        parts.append("stopping")
    return "; ".join(parts)


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


@contextmanager
def run_progress() -> Iterator[RunProgress]:
    """Shows the progress on standard error while the block runs, where a person looks."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (BarColumn(bar_width=24), MofNCompleteColumn(), TextColumn("{task.fields[state]}"))
    with Progress(*columns, console=console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        yield RunProgress(progress, progress.add_task("", total=None, state="starting"))
