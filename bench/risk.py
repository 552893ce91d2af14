"""Measures gate 4 of the answer cache: whether the bound on wrong answers holds, and what it costs in hits.

Simulated streams with known chances: at each bound, several seeds, with entries of unequal thresholds and with a drift.
Then question pairs with labels, each set split once in halves. A fixed cosine threshold is tuned on the one half; the
risk control gets that half as evidence and goes on learning on the other from what it may see: labels of questions that
it does not serve, and of a sample of those that it does. Both are measured on the other half; the fixed threshold is
also given the very error rate that ours had there, the best threshold for it chosen with that half's labels in view.

    python -m bench.risk --pairs DIR --quora DIR --json bench/results/risk.json
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench._common import options
from bench._common.engines import open_encoders
from bench._common.loops import run
from bench._common.plots import Line, Titles, plot_lines
from bench._common.results import plain, write_results
from bench._common.risk_cases import Cases, cases_of, encode_questions, nearest_pairs
from bench._common.risk_prior import fit_prior, show_prior
from bench._common.risk_replay import Curve, curve_of, replay, scores_of, serve_fixed, tuned_threshold
from bench._common.risk_sets import read_cached_questions, read_pairs, split
from bench._common.risk_streams import StreamLaw, run_stream
from bench._common.risk_tables import PairRow, RankingRow, StreamRow, print_pairs, print_rankings, print_streams
from bench._common.tables import say
from retrieval.settings import Settings

_STREAM_BOUNDS = (0.005, 0.01, 0.02)
_SERVED = 2_500
_DRIFT_AFTER = 8_000
_PAIR_SETS: Mapping[str, tuple[float, ...]] = {
    "clinc150": (0.02, 0.05),
    "squad-disfluent": (0.02, 0.05),
    "qqp": (0.05, 0.1),
    "quora-cache": (0.05, 0.1),
}
_FITTED = ("clinc150", "squad-disfluent")
_RANKING_RATES = (0.005, 0.01, 0.02, 0.03, 0.05, 0.07, 0.1)
_CURVE_BOUNDS = (0.01, 0.02, 0.03, 0.05, 0.07, 0.1, 0.15, 0.2, 0.3)


@dataclass(frozen=True, slots=True)
class Halves:
    """A set's halves: to tune on, and to measure on."""

    tune: Cases
    test: Cases


@dataclass(frozen=True, slots=True)
class Trials:
    """Orders and samples that are tried, and the share of served questions that is verified."""

    seeds: Sequence[int]
    shadow_share: float


@dataclass(frozen=True, slots=True)
class Report:
    """All figures."""

    shadow_share: float
    streams: Sequence[StreamRow]
    pairs: Sequence[PairRow]
    curves: Sequence[PairRow]
    rankings: Sequence[RankingRow]


def main() -> None:
    """Runs the tool."""
    arguments = _arguments()
    settings = options.settings(arguments, {})
    halves = run(_gather(arguments, settings))
    if arguments.fit:
        print(show_prior(fit_prior([halves[name].tune for name in _FITTED])))
        return
    report = _measure(halves, arguments)
    print_streams(report.streams)
    print_pairs("At the bounds", report.pairs)
    print_pairs("Over all bounds", report.curves)
    print_rankings(_RANKING_RATES, report.rankings)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), settings)
    if outputs.plot_file:
        _plot(outputs.plot_file, halves, report)


def _arguments() -> argparse.Namespace:
    made = options.parser(__doc__)
    made.add_argument("--pairs", type=Path, required=True, metavar="DIR", help="where pairs-NAME.tsv are")
    made.add_argument("--quora", type=Path, metavar="DIR", help="a set of cached questions, of the same layout")
    made.add_argument("--stored", type=int, default=20_000, metavar="N", help="cached questions at most")
    made.add_argument("--seeds", type=int, default=5, metavar="N", help="orders and samples tried")
    made.add_argument("--shadow", type=float, default=0.05, metavar="SHARE", help="of served questions, verified")
    made.add_argument("--fit", action="store_true", help="print the prior fitted to the halves to tune on, and stop")
    return made.parse_args()


async def _gather(arguments: argparse.Namespace, settings: Settings) -> dict[str, Halves]:
    found = {}
    names = [name for name in _PAIR_SETS if name != "quora-cache" and (not arguments.fit or name in _FITTED)]
    async with open_encoders(settings, arguments.cache) as encoders:
        for name in names:
            pairs = read_pairs(arguments.pairs / f"pairs-{name}.tsv")
            texts = (text for pair in pairs for text in (pair.asked, pair.stored))
            encoded = await encode_questions(encoders.cached, texts)
            tune, test = split(pairs)
            found[name] = Halves(cases_of(tune, encoded), cases_of(test, encoded))
            say(f"{name}: {len(tune):,} pairs to tune on, {len(test):,} to measure on")
        if arguments.quora and not arguments.fit:
            questions = read_cached_questions(arguments.quora, arguments.stored)
            encoded = await encode_questions(encoders.cached, [*questions.stored, *questions.asked])
            tune, test = split(nearest_pairs(questions, encoded))
            found["quora-cache"] = Halves(cases_of(tune, encoded), cases_of(test, encoded))
            say(f"quora-cache: {len(questions.stored):,} stored, {len(tune):,} and {len(test):,} asked")
    return found


def _measure(halves: Mapping[str, Halves], arguments: argparse.Namespace) -> Report:
    trials = Trials(range(arguments.seeds), arguments.shadow)
    few = Trials(trials.seeds[:2], trials.shadow_share)
    pairs, curves = [], []
    for name, half in halves.items():
        for guarded in (False, True):
            pairs += [_row(name, half, rate, trials, guarded=guarded) for rate in _PAIR_SETS[name]]
        curves += [_row(name, half, rate, few, guarded=False) for rate in _CURVE_BOUNDS]
        say(f"{name}: replayed")
    laws = {"entries": StreamLaw(), "drift": StreamLaw(drift_after=_DRIFT_AFTER)}
    streams = [
        StreamRow(name, rate, [run_stream(law, rate, _SERVED, trials.shadow_share, seed) for seed in trials.seeds])
        for name, law in laws.items()
        for rate in _STREAM_BOUNDS
    ]
    rankings = [row for name, half in halves.items() for row in _rankings(name, half)]
    return Report(trials.shadow_share, streams, pairs, curves, rankings)


def _row(name: str, half: Halves, rate: float, trials: Trials, *, guarded: bool) -> PairRow:
    used = Halves(half.tune.passed(), half.test.passed()) if guarded else half
    runs = [replay(used.tune, used.test, rate, trials.shadow_share, seed) for seed in trials.seeds]
    curve = curve_of(half.test.cosines, half.test.correct)
    return PairRow(
        name=name,
        guarded=guarded,
        bound=rate,
        asked=len(half.test.entries),
        ours=runs,
        tuned=serve_fixed(used.test, tuned_threshold(used.tune, rate)),
        fixed_at_same_rate=[curve.most(one.rate) for one in runs],
    )


def _rankings(name: str, half: Halves) -> list[RankingRow]:
    test, passed = half.test, half.test.passed()
    scored = {
        "cosine": curve_of(test.cosines, test.correct),
        "guard, then cosine": curve_of(passed.cosines, passed.correct),
        "ours": curve_of(scores_of(half.tune, test, 0), test.correct),
        "guard, then ours": curve_of(scores_of(half.tune.passed(), passed, 0), passed.correct),
    }
    return [RankingRow(name, label, [curve.most(rate) for rate in _RANKING_RATES]) for label, curve in scored.items()]


def _plot(path: Path, halves: Mapping[str, Halves], report: Report) -> None:
    for name, half in halves.items():
        count = len(half.test.entries)
        passed = half.test.passed()
        ours = [row for row in report.curves if row.name == name and row.mean_hits > 0]
        ours.sort(key=lambda row: row.mean_hits)
        lines = [
            _line("cosine, fixed", curve_of(half.test.cosines, half.test.correct), count),
            _line("guard, then cosine", curve_of(passed.cosines, passed.correct), count),
            Line("ours", [row.mean_hits / count for row in ours], [1.0 - row.mean_rate for row in ours]),
        ]
        titles = Titles(f"{name}: what is served, and how much of it rightly", "hits per question", "precision")
        plot_lines(path.with_name(f"{path.stem}-{name}{path.suffix}"), titles, lines)


def _line(label: str, curve: Curve, count: int) -> Line:
    shown = np.unique(np.geomspace(10, max(10, len(curve.hits)), 80).astype(np.int64)) - 1
    shown = shown[(shown < len(curve.hits)) & (shown >= 0)]
    shown = shown[curve.rates[shown] <= 0.35]
    return Line(label, (curve.hits[shown] / count).tolist(), (1.0 - curve.rates[shown]).tolist(), dashed=True)


if __name__ == "__main__":
    main()
