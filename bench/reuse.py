"""Measures whether a question may reuse the candidates of an earlier one that is nearly the same.

The idea is Proximity's (arXiv 2503.05530), made exact: a passage outside the earlier question's pool is at least as far
from that question, in angle, as the pool's edge, and so no nearer to the new one than the edge's angle less the angle
between the two questions. When the new question's k-th best passage of the pool is nearer than that, the pool holds its
k best of the whole set, and a search would find nothing else. For each question the earlier one is the most similar
other question of its set, which is kinder than any stream of requests. Printed: how often that certifies, by the cosine
of the two questions and the size of the pool, and what comparing with the pool costs beside a search.

    python -m bench.reuse SET SET SET --json bench/results/reuse.json
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

import numpy as np
from numpy.typing import NDArray

from bench._common import options
from bench._common.beir import BeirSet, Split, read_set
from bench._common.engines import open_encoders
from bench._common.loops import run
from bench._common.pools import encode_all, prepare_set
from bench._common.results import plain, write_results
from bench._common.tables import print_table, say
from encoders.types import TextKind
from retrieval.settings import Settings

_BEST = 10  # passages that must be certain
_POOLS = (100, 1000)
_EDGES = (0.0, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 1.001)  # of the questions' cosine
_TIMED = 200


@dataclass(frozen=True, slots=True)
class Certified:
    """How often a pool of this size was proven to hold all that a search would find."""

    set_name: str
    passages: int
    pool: int
    cosine_from: float  # of the two questions
    cosine_to: float
    questions: int
    certified: int
    right: int  # whose best passages of the pool were those of the whole set, proven or not


@dataclass(frozen=True, slots=True)
class Report:
    """All figures."""

    certified: tuple[Certified, ...]
    pool_us: float  # p50 of comparing a question with a pool of the largest size
    scan_us: float  # p50 of comparing it with all passages of the largest set


def main() -> None:
    """Runs the tool."""
    arguments = _arguments()
    settings = options.settings(arguments, {})
    report = run(_measure(arguments, settings))
    _print(report)
    if arguments.json:
        write_results(arguments.json, plain(report), settings)


def certify(pool: NDArray[np.float32], edge: float, question: NDArray[np.float32], between: float) -> bool:
    """Tells whether the best passages of a pool [n, dim] for a question are proven to be those of the whole set.

    `edge` is the cosine of the pool's last passage with the earlier question, `between` that of the two questions.
    """
    scores = np.sort(pool @ question)[::-1]
    nearest_outside = np.arccos(np.clip(edge, -1.0, 1.0)) - np.arccos(np.clip(between, -1.0, 1.0))
    return len(scores) >= _BEST and bool(scores[_BEST - 1] >= np.cos(max(0.0, float(nearest_outside))))


def _arguments() -> argparse.Namespace:
    made = options.parser(__doc__)
    options.add_set_options(made, Split.ALL)
    made.set_defaults(limit=2_000)
    return made.parse_args()


async def _measure(arguments: argparse.Namespace, settings: Settings) -> Report:
    sets = [read_set(folder, arguments.qrels).part(arguments.split, arguments.limit) for folder in arguments.sets]
    counted: list[Certified] = []
    largest, asked = np.empty((0, 0), dtype=np.float32), np.empty((0, 0), dtype=np.float32)
    async with open_encoders(settings, arguments.cache) as encoders:
        for source in sets:
            searchable = await prepare_set(source, encoders.cached, encoders.chunker)
            texts = [question.text for question in source.questions]
            questions = await encode_all(encoders.cached, texts, TextKind.QUERY)
            say(f"{source.name}: {len(questions):,} questions, {len(searchable.vectors):,} passages")
            counted += _of_set(source, searchable.vectors, questions)
            if len(searchable.vectors) > len(largest):
                largest, asked = searchable.vectors, questions
    return Report(tuple(counted), _timed(largest[: max(_POOLS)], asked), _timed(largest, asked))


def _of_set(source: BeirSet, passages: NDArray[np.float32], questions: NDArray[np.float32]) -> Iterator[Certified]:
    cosines = questions @ questions.T
    np.fill_diagonal(cosines, -1.0)
    earlier = cosines.argmax(axis=1)
    between = cosines[np.arange(len(questions)), earlier]
    for size in (size for size in _POOLS if size < len(passages)):
        outcomes = [_outcome(passages, questions, (now, before), size) for now, before in enumerate(earlier)]
        proven, right = np.array(outcomes).T
        for low, high in pairwise(_EDGES):
            inside = (between >= low) & (between < high)
            figures = (int(inside.sum()), int(proven[inside].sum()), int(right[inside].sum()))
            yield Certified(source.name, len(passages), size, low, min(high, 1.0), *figures)


def _outcome(
    passages: NDArray[np.float32], questions: NDArray[np.float32], pair: tuple[int, int], size: int
) -> tuple[bool, bool]:
    now, before = questions[pair[0]], questions[pair[1]]
    scores = passages @ before
    pool = np.argpartition(-scores, size)[:size]
    proven = certify(passages[pool], float(scores[pool].min()), now, float(now @ before))
    truly = np.argpartition(-(passages @ now), _BEST)[:_BEST]
    return proven, bool(np.isin(truly, pool).all())


def _timed(passages: NDArray[np.float32], questions: NDArray[np.float32]) -> float:
    took = []
    for question in questions[:_TIMED]:
        begun = time.perf_counter_ns()
        np.argpartition(-(passages @ question), min(_BEST, len(passages) - 1))
        took.append((time.perf_counter_ns() - begun) / 1e3)
    return median(took) if took else 0.0


def _print(report: Report) -> None:
    columns = ("set", "passages", "pool", "cosine", "asked", "certified", "right")
    rows: Sequence[tuple[str | int | float, ...]] = [
        (one.set_name, one.passages, one.pool, f"{one.cosine_from:g}", one.questions, one.certified, one.right)
        for one in report.certified
        if one.questions
    ]
    print_table(f"Pools that hold a similar question's {_BEST} best passages", columns, rows)
    print_table(
        "Comparing a question, p50",
        ("with a pool, us", "with all, us"),
        [(report.pool_us, report.scan_us)],
        digits=1,
    )


if __name__ == "__main__":
    main()
