"""Has thousands of hostile files parsed in the sandbox, and counts how each ends: no crash, no hang, memory in bounds.

The files are those of `tests/fakes/hostile.py`: made to do harm, or good ones broken by chance. A file that ends
neither as documents nor as one failure with a reason is a fault, and so is time or memory beyond the limits.

    python -m bench.hostile --count 2000 --json bench/results/hostile.json
"""

from __future__ import annotations

import argparse
import os
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path

from bench._common import options
from bench._common.memory import own_bytes
from bench._common.results import plain, write_results
from bench._common.tables import Cell, print_table, say
from indexers.parsing.options import ParseOptions, SourceFile
from indexers.parsing.parsed import ParsedDocument, ParseFailure, SourceItem
from indexers.sandbox.pool import ParserPool, SandboxLimits
from tests.fakes.hostile import HostileFile, hostile_files

_MIB = 1024 * 1024
_OPTIONS = ParseOptions(max_file_bytes=4_000_000, max_row_bytes=2_000_000, max_text_characters=1_000_000)
_EVERY_S = 0.01
_LISTED = 10


@dataclass(frozen=True, slots=True)
class Ending:
    """How one file ended."""

    name: str
    what: str  # is wrong with it
    outcome: str  # `documents`, `skipped`, or the kind of its last failure
    reason: str
    seconds: float
    fault: str  # what should not have been; empty when all is well


@dataclass(frozen=True, slots=True)
class Report:
    """What a run came to."""

    files: int
    seconds: float
    outcomes: dict[str, int]  # files by how they ended
    faults: list[str]
    crashes: list[Ending]  # the first of those whose parser broke, for who mends parsers
    slowest: list[Ending]
    timeout_s: float
    memory_limit_bytes: int
    child_peak_bytes: int  # anonymous memory, sampled
    parent_growth_bytes: int  # anonymous memory, from after the first tenth to the end
    processes_started: int


def main() -> None:
    """Runs the tool; the exit status is 1 when there was a fault."""
    arguments = _arguments()
    report = measure(hostile_files(arguments.count, arguments.seed), arguments.timeout_s, arguments.memory_mib * _MIB)
    _print(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), None)
    if report.faults:
        raise SystemExit(1)


def measure(files: Iterator[HostileFile], timeout_s: float, memory_bytes: int) -> Report:
    """Parses the files one after the other in one process, which is replaced as often as need be."""
    endings: list[Ending] = []
    early = 0
    started = time.perf_counter()
    limits = SandboxLimits(timeout_s, memory_bytes)
    with tempfile.TemporaryDirectory() as name, closing(ParserPool(limits, 1)) as pool, _watched(pool) as peaks:
        for number, hostile in enumerate(files):
            endings.append(_parse(pool, Path(name), hostile, timeout_s))
            if number == 200:
                early = own_bytes(os.getpid())
    seconds = time.perf_counter() - started
    child_peak = max(peaks.values(), default=0)
    faults = [f"{ending.name} ({ending.what}): {ending.fault}" for ending in endings if ending.fault]
    return Report(
        files=len(endings),
        seconds=seconds,
        outcomes=dict(Counter(ending.outcome for ending in endings).most_common()),
        faults=faults + ([f"{child_peak} bytes of memory"] if child_peak > memory_bytes + 64 * _MIB else []),
        crashes=[ending for ending in endings if ending.outcome == "crashed"][: 5 * _LISTED],
        slowest=sorted(endings, key=lambda ending: -ending.seconds)[:_LISTED],
        timeout_s=timeout_s,
        memory_limit_bytes=memory_bytes,
        child_peak_bytes=child_peak,
        parent_growth_bytes=own_bytes(os.getpid()) - early if early else 0,
        processes_started=len(peaks),
    )


def _parse(pool: ParserPool, folder: Path, hostile: HostileFile, timeout_s: float) -> Ending:
    path = folder / hostile.name
    path.write_bytes(hostile.content)
    started = time.perf_counter()
    items = list(pool.parse(SourceFile(path, hostile.name, path.as_uri()), _OPTIONS))
    seconds = time.perf_counter() - started
    path.unlink()
    fault = _fault(hostile.name, items)
    if seconds > timeout_s + 5.0:
        fault = f"{seconds:.1f} s"
    last = items[-1] if items else None
    if isinstance(last, ParseFailure):
        return Ending(hostile.name, hostile.what, last.kind, last.reason[:300], seconds, fault)
    outcome = "documents" if isinstance(last, ParsedDocument) else "skipped"
    return Ending(hostile.name, hostile.what, outcome, "", seconds, fault)


def _fault(name: str, items: Sequence[SourceItem]) -> str:
    """Says what is wrong with an ending; empty when it is documents, or a failure with a reason."""
    if not items:
        return "neither a document nor a reason"
    if any(isinstance(item, ParseFailure) and not (item.reason and item.kind) for item in items):
        return "a failure without a reason"
    if sum(isinstance(item, ParseFailure) and item.path == name for item in items) > 1:
        return "more than one failure of the file"
    return ""


@contextmanager
def _watched(pool: ParserPool) -> Iterator[dict[int, int]]:
    """Yields the most memory that each process held, by its number, sampled meanwhile."""
    peaks: dict[int, int] = {}
    done = threading.Event()

    def watch() -> None:
        while not done.wait(_EVERY_S):
            for pid in pool.pids():
                peaks[pid] = max(peaks.get(pid, 0), own_bytes(pid))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peaks
    finally:
        done.set()
        thread.join()


def _arguments() -> argparse.Namespace:
    made = options.parser(__doc__)
    made.add_argument("--count", type=int, default=2_000, metavar="N", help="files")
    made.add_argument("--seed", type=int, default=6)
    made.add_argument("--timeout-s", type=float, default=10.0, metavar="S", help="for one document or row")
    made.add_argument("--memory-mib", type=int, default=256, metavar="MIB", help="of the child process")
    return made.parse_args()


def _print(report: Report) -> None:
    outcomes = list(report.outcomes.items())
    print_table(f"{report.files:,} hostile files, {report.seconds:.0f} s", ["ending", "files"], outcomes)
    slowest: list[list[Cell]] = [
        [ending.name, ending.what, ending.outcome, ending.seconds] for ending in report.slowest
    ]
    print_table("slowest", ["file", "what", "ending", "seconds"], slowest)
    for ending in report.crashes:
        say(f"{ending.name} ({ending.what}): {ending.reason}")
    say(f"child processes: {report.processes_started}, at most {report.child_peak_bytes / _MIB:.0f} MiB")
    say(f"this process grew by {report.parent_growth_bytes / _MIB:.1f} MiB")
    for fault in report.faults:
        say(f"FAULT {fault}")


if __name__ == "__main__":
    main()
