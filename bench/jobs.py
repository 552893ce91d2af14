"""Measures an indexing job as a user runs it: `headrace jobs run` on a file of rows, or on a folder of small files.

The whole command is timed, from its start to its exit: process, models, scan, sandboxed parsing, languages and near
duplicates, chunking, encoding, writing, reading back, the generation. First all is new, then nothing has changed,
then one document in a hundred has. Beside it stands the bare loop around the ONNX session, half before and half after.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._common import options
from bench._common.engines import open_encoders
from bench._common.loops import run
from bench._common.memory import Watched, watch
from bench._common.passages import read_passages
from bench._common.plots import Line, Titles, plot_bars, plot_lines
from bench._common.results import plain, write_results
from bench._common.tables import Cell, print_table
from bench.indexing import Rate, bare_rate
from indexers.types import Document
from retrieval.settings import Settings

_JOB = """
name = "bench"
collection = "docs"

[source]
kind = "folder"
path = "source"
"""
_CHANGED_EVERY = 100


@dataclass(frozen=True, slots=True)
class Command:
    """One run of the command."""

    seconds: float  # from its start to its exit
    run_seconds: float  # of the run alone
    tokens: int
    documents: dict[str, int]
    memory: Watched  # of all its processes


@dataclass(frozen=True, slots=True)
class Report:
    """All figures."""

    layout: str
    passages: int
    first: Command
    unchanged: Command
    changed: Command
    bare_tokens_per_s: float
    ratio: float  # tokens a second of the first run as a whole, to the bare loop's
    run_ratio: float  # without the start of the process
    unchanged_share: float  # of the first run's time
    changed_share: float


def main() -> None:
    """Runs the tool."""
    made = options.parser(__doc__)
    made.add_argument("--corpus", type=Path, required=True, metavar="FILE", help="JSON lines of documents; .gz too")
    made.add_argument("--passages", type=int, default=10_000, metavar="N")
    made.add_argument("--bare", type=int, default=0, metavar="N", help="passages of the bare loop; all by default")
    made.add_argument("--memory-plot", type=Path, metavar="FILE", help="memory over time of the first run")
    made.add_argument("--layout", choices=["rows", "files"], default="rows")
    arguments = made.parse_args()
    report = run(_measure(arguments, options.settings(arguments, {})))
    _print(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), None)
    if arguments.memory_plot:
        _plot_memory(arguments.memory_plot, report)
    if outputs.plot_file:
        series = {"seconds": [report.first.seconds, report.unchanged.seconds, report.changed.seconds]}
        titles = Titles(f"headrace jobs run, {report.passages:,} passages", "", "seconds")
        plot_bars(outputs.plot_file, titles, ["everything new", "nothing changed", "1 % changed"], series)


async def _measure(arguments: argparse.Namespace, settings: Settings) -> Report:
    documents = read_passages(arguments.corpus, arguments.passages)
    with tempfile.TemporaryDirectory(prefix="headrace-jobs-") as place:
        folder = Path(place)
        (folder / "job.toml").write_text(_JOB, encoding="utf-8")
        _write(folder / "source", documents, arguments.layout, changed=False)
        measured = documents[: arguments.bare or None]
        before = await _bare(arguments, settings, measured[::2])
        first = await asyncio.to_thread(_command, folder)
        after = await _bare(arguments, settings, measured[1::2])
        unchanged = await asyncio.to_thread(_command, folder)
        _write(folder / "source", documents, arguments.layout, changed=True)
        changed = await asyncio.to_thread(_command, folder)
    bare = before.plus(after).per_second
    return Report(
        arguments.layout,
        len(documents),
        first,
        unchanged,
        changed,
        bare,
        first.tokens / first.seconds / bare,
        first.tokens / first.run_seconds / bare,
        unchanged.seconds / first.seconds,
        changed.seconds / first.seconds,
    )


async def _bare(arguments: argparse.Namespace, settings: Settings, documents: Sequence[Document]) -> Rate:
    async with open_encoders(settings, arguments.cache) as encoders:
        return await bare_rate(settings, encoders, documents)


def _write(folder: Path, documents: Sequence[Document], layout: str, *, changed: bool) -> None:
    folder.mkdir(exist_ok=True)
    texts = [
        f"{one.text}\n\nIt was changed." if changed and at % _CHANGED_EVERY == 0 else one.text
        for at, one in enumerate(documents)
    ]
    if layout == "files":
        for at, text in enumerate(texts):
            (folder / f"d{at:06}.txt").write_text(text, encoding="utf-8")
        return
    rows = (
        {"id": one.document_id, "title": one.title, "text": text} for one, text in zip(documents, texts, strict=True)
    )
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _command(folder: Path) -> Command:
    command = [sys.executable, "-m", "retrieval.cli.main", "jobs", "run", str(folder / "job.toml"), "--json"]
    command += ["--data", str(folder / "data")]
    out = folder / "run.json"
    started = time.perf_counter()
    with out.open("wb") as written, subprocess.Popen(command, stdout=written) as process:
        memory = watch(process)
    seconds = time.perf_counter() - started
    if process.returncode:
        raise SystemExit(f"the job ended with exit code {process.returncode}")
    run_ = json.loads(out.read_text(encoding="utf-8"))
    report = json.loads(run_["report_json"])
    return Command(seconds, report["seconds"], run_["tokens"], run_["documents"], memory)


def _plot_memory(path: Path, report: Report) -> None:
    """Draws what the first run held, its processes together, without mapped files."""
    memory = report.first.memory
    titles = Titles(f"headrace jobs run, {report.passages:,} passages", "seconds", "MiB of all its processes")
    plot_lines(path, titles, [Line("held", memory.seconds, [one / 2**20 for one in memory.held_bytes])])


def _print(report: Report) -> None:
    rows: list[list[Cell]] = []
    for name, one in (("new", report.first), ("unchanged", report.unchanged), ("1 % changed", report.changed)):
        share = one.seconds / report.first.seconds
        rows.append(
            [
                name,
                one.seconds,
                one.run_seconds,
                f"{one.tokens:,}",
                f"{share:.1%}",
                f"{one.memory.peak_bytes >> 20} MiB",
            ]
        )
    columns = ["run", "command s", "run s", "tokens", "of the first", "peak memory"]
    title = (
        f"headrace jobs run, {report.passages:,} passages as {report.layout}: {report.ratio:.3f} of the bare loop's "
        f"{report.bare_tokens_per_s:,.0f} tokens/s, {report.run_ratio:.3f} without the start"
    )
    print_table(title, columns, rows, digits=2)


if __name__ == "__main__":
    main()
