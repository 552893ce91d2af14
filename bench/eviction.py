"""Measures what should leave a full cache: LRU, SIEVE, S3-FIFO (ours) and W-TinyLFU against Belady's optimum.

Each policy answers the same requests at 1, 5, 10 and 20 % of the distinct bytes: Zipf's law with several exponents,
with and without scans, and the questions of a trace over each handed set, long enough for a cache to matter. Hit rate
and byte hit rate are exact and the same on each machine; operations a second are of this Python, for ratios only.
S3-FIFO pays for its ghosts out of the same bytes, as it does in the product; SIEVE and W-TinyLFU keep their marks,
sketch and queue for nothing here.

    python -m bench.eviction --data ../shared/data --json bench/results/eviction.json
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._common.eviction_policies import Belady, Lru, Ours, Policy, Sieve, WTinyLfu
from bench._common.results import plain, write_results
from bench._common.tables import Cell, print_table, say
from bench._common.traces.events import Law
from bench._common.traces.keys import KeyLaw, KeyTrace, question_trace, zipf_trace
from bench.traces import trace_of
from retrieval.caching.s3fifo import ENTRY_OVERHEAD_BYTES, KEY_BYTES

SHARES = (0.01, 0.05, 0.10, 0.20)
_EXPONENTS = (0.6, 0.8, 1.0, 1.2)
_SETS = ("squad-sub", "docs-faq")
_QUESTION_REQUESTS = 20_000

Make = Callable[[int, KeyTrace], Policy]  # capacity in bytes -> a policy
POLICIES: Mapping[str, Make] = {
    "LRU": lambda capacity, trace: Lru(capacity),
    "SIEVE": lambda capacity, trace: Sieve(capacity),
    "S3-FIFO": lambda capacity, trace: Ours(capacity, KEY_BYTES + ENTRY_OVERHEAD_BYTES),
    "W-TinyLFU": lambda capacity, trace: WTinyLfu(capacity, max(1, capacity * len(trace.sizes) // sum(trace.sizes))),
    "Belady": lambda capacity, trace: Belady(capacity, trace.keys),
}


@dataclass(frozen=True, slots=True)
class Figure:
    """One policy on one trace at one size."""

    trace: str
    share: float  # of the distinct bytes
    policy: str
    hit_rate: float
    byte_hit_rate: float
    operations_per_s: float


@dataclass(frozen=True, slots=True)
class Report:
    """All figures of a run."""

    figures: Sequence[Figure]
    mean_share_of_belady: Mapping[str, float]  # of its hits, by policy, over traces and sizes
    questions_share_of_belady: Mapping[str, float]  # the same over the traces of questions alone


def measure(trace: KeyTrace, share: float, policy: str) -> Figure:
    """Replays a trace."""
    cache = POLICIES[policy](int(trace.distinct_bytes * share), trace)
    hits = hit_bytes = 0
    started_ns = time.perf_counter_ns()
    for key in trace.keys:
        if cache.request(key, trace.sizes[key]):
            hits += 1
            hit_bytes += trace.sizes[key]
    seconds = (time.perf_counter_ns() - started_ns) / 1e9
    asked_bytes = sum(trace.sizes[key] for key in trace.keys)
    return Figure(trace.name, share, policy, hits / len(trace.keys), hit_bytes / asked_bytes, len(trace.keys) / seconds)


def main() -> None:
    """Runs the tool."""
    arguments = _arguments()
    figures = list[Figure]()
    for trace in _traces(arguments.data, arguments.seed, arguments.requests):
        say(f"{trace.name}: {len(trace.keys):,} requests")
        figures += [measure(trace, share, policy) for share in SHARES for policy in POLICIES]
    questions = [figure for figure in figures if figure.trace.startswith("questions")]
    report = Report(figures, _means(figures), _means(questions))
    _print(report)
    if arguments.json is not None:
        write_results(arguments.json, plain(report), None)


def _traces(data: Path | None, seed: int, requests: int) -> Iterator[KeyTrace]:
    for exponent in _EXPONENTS:
        yield zipf_trace(KeyLaw(requests=requests, exponent=exponent), seed)
    for exponent in (0.8, 1.0):
        yield zipf_trace(KeyLaw(requests=requests, exponent=exponent, scan_every=5000, scan_length=1000), seed)
    if data is not None:
        for name in _SETS:
            for zipf in (0.8, 1.0):
                law = Law(requests=_QUESTION_REQUESTS, zipf=zipf)
                made = question_trace(trace_of(data / name, law, seed))
                yield KeyTrace(f"{made.name}, Zipf {zipf:g}", made.keys, made.sizes)


def _means(figures: Sequence[Figure]) -> dict[str, float]:
    """Returns by policy the mean hit rate as a share of the optimum's, over traces and sizes."""
    best = {(one.trace, one.share): one.hit_rate for one in figures if one.policy == "Belady"}
    shares: dict[str, list[float]] = defaultdict(list)
    for one in figures:
        shares[one.policy].append(one.hit_rate / (best[one.trace, one.share] or 1.0))
    return {policy: sum(found) / len(found) for policy, found in shares.items()}


def _print(report: Report) -> None:
    rates: Sequence[tuple[str, Callable[[Figure], float]]] = (
        ("hit rate", lambda one: one.hit_rate),
        ("byte hit rate", lambda one: one.byte_hit_rate),
    )
    for title, rate in rates:
        table: dict[tuple[str, float], dict[str, float]] = defaultdict(dict)
        for one in report.figures:
            table[one.trace, one.share][one.policy] = rate(one)
        rows: list[list[Cell]] = [
            [trace, f"{share:.0%}", *(by_policy[policy] for policy in POLICIES)]
            for (trace, share), by_policy in table.items()
        ]
        print_table(title, ("trace", "size", *POLICIES), rows)
    _print_means(report)


def _print_means(report: Report) -> None:
    speeds: dict[str, list[float]] = defaultdict(list)
    for one in report.figures:
        speeds[one.policy].append(one.operations_per_s)
    rows: list[list[Cell]] = [
        [
            policy,
            report.mean_share_of_belady[policy],
            report.questions_share_of_belady.get(policy),
            round(sorted(found)[len(found) // 2]),
        ]
        for policy, found in speeds.items()
    ]
    columns = ("policy", "mean share of Belady's hits", "of questions alone", "median operations/s")
    print_table("all traces and sizes", columns, rows)


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    made.add_argument("--data", type=Path, metavar="DIR", help="the folder of the handed sets; laws alone without")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--requests", type=int, default=KeyLaw().requests, metavar="N", help="of a trace by law")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the results here")
    return made.parse_args()


if __name__ == "__main__":
    main()
