"""The tables of the risk tool, and the interval of an error rate."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bench._common.risk_replay import Served
from bench._common.risk_streams import Streamed
from bench._common.tables import print_table
from retrieval.answers.risk.bounds import upper_bounds


@dataclass(frozen=True, slots=True)
class StreamRow:
    """A bound on one kind of stream, over seeds."""

    name: str
    bound: float
    runs: Sequence[Streamed]

    @property
    def unbroken(self) -> int:
        """Runs whose 95 % interval leaves the bound possible."""
        return sum(interval(run.errors, run.served)[0] <= self.bound for run in self.runs)

    @property
    def held(self) -> int:
        """Runs whose measured error rate is within the bound."""
        return sum(run.errors <= self.bound * run.served for run in self.runs)


@dataclass(frozen=True, slots=True)
class PairRow:
    """A bound on one set of pairs, over seeds."""

    name: str
    guarded: bool
    bound: float
    asked: int
    ours: Sequence[Served]
    tuned: Served
    fixed_at_same_rate: Sequence[int]  # hits of the best fixed cosine at the error rate of each of ours

    @property
    def mean_hits(self) -> float:
        """Our hits, over the seeds."""
        return float(np.mean([one.hits for one in self.ours]))

    @property
    def mean_rate(self) -> float:
        """Our errors per hit, over the seeds."""
        hits = sum(one.hits for one in self.ours)
        return sum(one.errors for one in self.ours) / hits if hits else 0.0


@dataclass(frozen=True, slots=True)
class RankingRow:
    """The most hits at some error rates by a threshold on one score, chosen with the labels in view."""

    name: str
    score: str
    hits: Sequence[int]


def interval(errors: int, trials: int) -> tuple[float, float]:
    """Returns the 95 % interval of an error rate (Clopper and Pearson, 1934); the upper end reads 1 above a half."""
    if trials == 0:
        return 0.0, 1.0
    counts = np.array([float(errors), float(trials - errors)])
    upper, rest = upper_bounds(counts[:1], np.array([float(trials)]), 0.975), _low(errors, trials)
    return rest, float(upper[0])


def print_streams(rows: Sequence[StreamRow]) -> None:
    """Prints what came of the streams; the interval is that of the worst seed."""
    columns = (
        "stream",
        "bound %",
        "seeds",
        "held",
        "possible",
        "served",
        "worst %",
        "95 % low",
        "high",
        "true %",
        "labels",
        "alarms",
    )
    print_table("Simulated streams", columns, [_stream_row(row) for row in rows], digits=2)


def print_pairs(title: str, rows: Sequence[PairRow]) -> None:
    """Prints what came of the pairs; the interval is that of the mean."""
    columns = (
        "set",
        "guard",
        "bound %",
        "asked",
        "hits",
        "wrong %",
        "95 % low",
        "high",
        "fixed, same %",
        "tuned",
        "wrong %",
    )
    print_table(title, columns, [_pair_row(row) for row in rows], digits=2)


def print_rankings(rates: Sequence[float], rows: Sequence[RankingRow]) -> None:
    """Prints what the scores can do, thresholds left out of account."""
    columns = ("set", "score", *(f"{100 * rate:g} %" for rate in rates))
    print_table(
        "Hits at an error rate, by the best threshold", columns, [(row.name, row.score, *row.hits) for row in rows]
    )


def _stream_row(row: StreamRow) -> tuple[str | int | float, ...]:
    worst = max(row.runs, key=lambda run: run.errors / max(1, run.served))
    low, high = interval(worst.errors, worst.served)
    served = sum(run.served for run in row.runs)
    true = sum(run.expected_errors for run in row.runs) / max(1, served)
    labels = int(np.median([run.labels_before_first for run in row.runs]))
    figures = (100 * worst.errors / max(1, worst.served), 100 * low, 100 * high, 100 * true)
    alarms = sum(run.alarms for run in row.runs)
    return (row.name, 100 * row.bound, len(row.runs), row.held, row.unbroken, served, *figures, labels, alarms)


def _pair_row(row: PairRow) -> tuple[str | int | float, ...]:
    hits, errors = round(row.mean_hits), round(float(np.mean([one.errors for one in row.ours])))
    low, high = interval(errors, hits)
    fixed = float(np.mean(row.fixed_at_same_rate))
    return (
        *(row.name, "yes" if row.guarded else "no", 100 * row.bound, row.asked, hits),
        *(100 * row.mean_rate, 100 * low, 100 * high),
        *(round(fixed), row.tuned.hits, 100 * row.tuned.rate),
    )


def _low(errors: int, trials: int) -> float:
    """The lower bound is the chance of success's upper bound, turned round; found by halving the binomial tail."""
    if errors == 0:
        return 0.0
    low, high = 0.0, errors / trials
    for _ in range(40):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if _tail(errors, trials, middle) < 0.025 else (low, middle)
    return low


def _tail(errors: int, trials: int, rate: float) -> float:
    """Returns the chance of at least so many errors."""
    logs = (
        np.cumsum(np.log(np.arange(trials, trials - errors + 1, -1) / np.arange(1, errors)))
        if errors > 1
        else np.zeros(0)
    )
    counts = np.arange(errors)
    terms = np.concatenate((np.zeros(1), logs)) + counts * np.log(rate) + (trials - counts) * np.log1p(-rate)
    return 1.0 - float(np.exp(terms).sum())
