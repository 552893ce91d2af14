"""Measures the look-up of the nearest stored questions: recall, latency, additions, removals and memory.

Three ways over the same entries: a plain scan, sign bits with the best 256 scored exactly, and what the answer cache
uses. Entries are real questions as far as `--encoded` goes, the rest made up from them: a point between a real question
and one of its eight nearest, moved by half a draw from the normal law with the real ones' second moments. What is asked
are other real questions, and directions drawn at random, far from everything. One BLAS thread, as in the server; before
each search 24 MB of other memory are read, for an encoder would have run. `--busy` keeps a second process computing.

    python -m bench.nearest --stored corpus.jsonl --asked queries.jsonl misses.jsonl --json bench/results/nearest.json
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench._common import options
from bench._common.engines import open_encoders
from bench._common.loops import run
from bench._common.nearest_ways import Scan, Signs, Vectors, Way, entries_like
from bench._common.passages import read_questions
from bench._common.pools import encode_all
from bench._common.results import plain, write_results
from bench._common.statistics import Quantiles, quantiles
from bench._common.tables import print_table, say
from encoders.cpu import one_blas_thread
from encoders.types import TextKind
from retrieval.answers.nearest import NearestQuestions
from retrieval.settings import Settings

_SEED = 20_261_201
_OTHER_FLOATS = 6_000_000
_FAR = 100
_SAME = 1e-5


@dataclass(frozen=True, slots=True)
class Searched:
    """One way, one size, one least similarity."""

    way: str
    entries: int
    asked: str
    min_similarity: float
    recall: float  # of the questions whose nearest reaches it, those for which it was found
    search: Quantiles


@dataclass(frozen=True, slots=True)
class Kept:
    """What keeping entries costs one way."""

    way: str
    entries: int
    add: Quantiles
    remove: Quantiles
    entry_bytes: float


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run."""

    real_entries: int
    asked: int
    busy: bool
    limit: int
    searched: tuple[Searched, ...]
    kept: tuple[Kept, ...]


def main() -> None:
    """Runs the tool."""
    arguments = _arguments()
    settings = options.settings(arguments, {})
    stored, asked = run(_encoded(arguments, settings))
    with one_blas_thread(), _busy(arguments.busy):
        report = _measure(arguments, stored, asked)
    _print(report)
    if arguments.json:
        write_results(arguments.json, plain(report), settings)


def _arguments() -> argparse.Namespace:
    made = options.parser(__doc__)
    made.add_argument("--stored", type=Path, required=True, metavar="FILE", help="questions that are stored")
    made.add_argument("--asked", type=Path, nargs="+", required=True, metavar="FILE", help="questions that are asked")
    made.add_argument("--encoded", type=int, default=16_000, metavar="N", help="stored questions that are real")
    made.add_argument("--entries", type=int, nargs="+", default=[1_000, 10_000, 100_000], metavar="N")
    made.add_argument("--questions", type=int, default=100, metavar="N", help="asked of each file")
    made.add_argument("--similarities", type=float, nargs="+", default=[0.6, 0.7, 0.8], metavar="X")
    made.add_argument("--neighbours", type=int, default=8, metavar="N", help="asked for at most")
    made.add_argument("--busy", action="store_true", help="keep another process computing meanwhile")
    return made.parse_args()


async def _encoded(arguments: argparse.Namespace, settings: Settings) -> tuple[Vectors, Vectors]:
    texts = read_questions(arguments.stored)
    stored = texts[:: max(1, len(texts) // arguments.encoded)][: arguments.encoded]
    asked = [text for file in arguments.asked for text in read_questions(file, arguments.questions)]
    async with open_encoders(settings, arguments.cache) as encoders:
        vectors = await encode_all(encoders.cached, [*stored, *asked], TextKind.QUERY)
        say(f"{len(vectors):,} questions, {encoders.cached.computed:,} of them encoded now")
    return vectors[: len(stored)], vectors[len(stored) :]


@contextmanager
def _busy(wanted: bool) -> Iterator[None]:
    if not wanted:
        yield
        return
    process = multiprocessing.get_context("spawn").Process(target=_compute_for_ever, daemon=True)
    process.start()
    try:
        yield
    finally:
        process.terminate()
        process.join()


def _compute_for_ever() -> None:
    left = np.ones((512, 384), dtype=np.float32)
    right = np.ones((384, 16_384), dtype=np.float32)
    with one_blas_thread():
        while True:
            left @ right


def _measure(arguments: argparse.Namespace, real: Vectors, asked: Vectors) -> Report:
    far = np.random.default_rng(_SEED).standard_normal((_FAR, real.shape[1])).astype(np.float32)
    far /= np.linalg.norm(far, axis=1, keepdims=True)
    conditions = [("real", asked, least) for least in arguments.similarities]
    conditions += [("far", far, arguments.similarities[0]), ("real", asked, 0.0)]
    searched: list[Searched] = []
    kept: list[Kept] = []
    for count in arguments.entries:
        entries = entries_like(real, count)
        for name, way in _ways(real.shape[1], count):
            say(f"{count:,} entries, {name}")
            added = [_timed(partial(way.add, _key(number), entries[number])) for number in range(count)]
            used = way.used_bytes / count
            for kind, questions, least in conditions:
                recall, times = _searched(way, entries, questions, least, arguments.neighbours)
                searched.append(Searched(name, count, kind, least, recall, times))
            removed = [_timed(partial(way.remove, _key(number))) for number in range(0, count, 10)]
            kept.append(Kept(name, count, quantiles(added), quantiles(removed), used))
    real_entries = min(len(real), max(arguments.entries))
    return Report(real_entries, len(asked), arguments.busy, arguments.neighbours, tuple(searched), tuple(kept))


def _ways(dim: int, count: int) -> Iterator[tuple[str, Way]]:
    yield "scan", Scan(dim, count)
    yield "signs", Signs(dim, count)
    yield "certified", NearestQuestions(dim)


def _searched(way: Way, entries: Vectors, questions: Vectors, least: float, limit: int) -> tuple[float, Quantiles]:
    best = np.array([(entries @ question).max() for question in questions])
    other = np.ones(_OTHER_FLOATS, dtype=np.float32)
    times, found = [], []
    for question in questions:
        other.sum()
        started = time.perf_counter_ns()
        neighbours = way.search(question, limit, least)
        times.append(time.perf_counter_ns() - started)
        found.append(neighbours[0].similarity if neighbours else -2.0)
    return recall_of_nearest(np.array(found), best, least), quantiles(times)


def recall_of_nearest(found: NDArray[np.float64], best: Vectors, least: float) -> float:
    """Returns, of the questions whose nearest entry reaches `least`, the share for which one as near was found."""
    reaching = best >= least + _SAME
    return float((found[reaching] >= best[reaching] - _SAME).mean()) if reaching.any() else 1.0


def _timed(call: Callable[[], object]) -> int:
    started = time.perf_counter_ns()
    call()
    return time.perf_counter_ns() - started


def _key(number: int) -> bytes:
    return number.to_bytes(32, "big")


def _print(report: Report) -> None:
    load = "another process computing" if report.busy else "otherwise idle"
    title = f"{report.asked} questions, {report.limit} neighbours at most, {load}; {report.real_entries:,} entries real"
    print_table(
        title,
        ["entries", "way", "asked", "least", "recall", "p50 ms", "p95", "p99"],
        [
            [one.entries, one.way, one.asked, one.min_similarity, one.recall, *_three(one.search)]
            for one in report.searched
        ],
    )
    print_table(
        "keeping entries, ms",
        ["entries", "way", "add p50", "p99", "max", "remove p50", "p99", "max", "bytes"],
        [
            [
                one.entries,
                one.way,
                *_worst(one.add),
                *_worst(one.remove),
                round(one.entry_bytes),
            ]
            for one in report.kept
        ],
    )


def _three(times: Quantiles) -> Sequence[float]:
    return [times.p50_ms, times.p95_ms, times.p99_ms]


def _worst(times: Quantiles) -> Sequence[float]:
    return [times.p50_ms, times.p99_ms, times.max_ms]


if __name__ == "__main__":
    main()
