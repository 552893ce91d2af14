"""What `headrace index` shows: progress while it runs, and the summary at the end."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from retrieval.cli.output import console, show, table

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.progress import Progress, TaskID

    from indexers.reports import IndexCounts, IndexReport, Problem

_SHOWN_PROBLEMS = 20


class IndexProgress:
    """A bar over what is to be read, with rates of chunks and tokens; the remaining time follows from the bar."""

    def __init__(self, progress: Progress, task: TaskID, done: Callable[[], int] | None) -> None:
        self._progress = progress
        self._task = task
        self._done = done

    def advanced(self, counts: IndexCounts) -> None:
        """Takes the counts since the start of the run."""
        elapsed = self._progress.tasks[self._task].elapsed or 0.0
        rates = ""
        if counts.chunks and elapsed:
            rates = f"{counts.chunks / elapsed:,.0f} chunks/s"
            rates += f", {counts.tokens / elapsed:,.0f} tokens/s" if counts.tokens else ""
        documents = counts.written + counts.unchanged
        state = f"{documents:,} documents, {counts.chunks:,} chunks  {rates}"
        completed = documents + counts.failed if self._done is None else self._done()
        self._progress.update(self._task, completed=completed, state=state)


@contextmanager
def index_progress(total: int, done: Callable[[], int] | None = None) -> Iterator[IndexProgress]:
    """Shows a bar on standard error while the block runs, where a person looks.

    `done` is asked how much of the total is done; None counts documents.
    """
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (BarColumn(), TaskProgressColumn(), TextColumn("{task.fields[state]}"), TimeRemainingColumn())
    with Progress(*columns, console=console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
        yield IndexProgress(progress, progress.add_task("", total=max(total, 1), state="starting"), done)


def report_json(report: IndexReport, collection: str, seconds: float) -> dict[str, Any]:
    """Returns the summary of a run as plain values."""
    return {
        "collection": collection,
        **asdict(report.counts),
        "seconds": round(seconds, 3),
        "failures": [asdict(problem) for problem in report.failures],
        "skips": [asdict(problem) for problem in report.skips],
        "warnings": [asdict(problem) for problem in report.warnings],
        "epoch": asdict(report.epoch),
    }


def show_report(report: IndexReport, collection: str, seconds: float) -> None:
    """Prints the summary of a run, and what was wrong with which file."""
    counts = report.counts
    rate = f" ({counts.chunks / seconds:,.0f} chunks/s)" if seconds and counts.chunks else ""
    rows = [
        ("indexed", f"{counts.written:,}", f"{counts.chunks:,} chunks in {seconds:.1f} s{rate}"),
        ("unchanged", f"{counts.unchanged:,}", ""),
        ("removed", f"{counts.removed:,}", ""),
        ("failed", f"{counts.failed:,}", ""),
        ("skipped", f"{counts.skipped:,}", ""),
    ]
    show(table([collection, "count", ""], rows, right=["count"]))
    problems = (("failed", report.failures), ("skipped", report.skips), ("note", report.warnings))
    show(*(_problems(name, found) for name, found in problems if found))


def _problems(name: str, found: Sequence[Problem]) -> RenderableType:
    rows = [(problem.name, problem.reason) for problem in found[:_SHOWN_PROBLEMS]]
    if len(found) > _SHOWN_PROBLEMS:
        rows.append(("", f"and {len(found) - _SHOWN_PROBLEMS} more; --json lists them"))
    return table([name, "why"], rows)
