"""Counts what gate 2 lets through: of look-alike questions it must be none, of harmless rewrites most.

The pairs are made with a seed of real questions, and by other hands than the guard (see bench/_common/lookalikes.py). A
pair passes when both texts are one after normalisation, or when the guard does not refuse it. Hard look-alikes change
their form besides, ask by another word, or leave a qualifier out. The tool ends with status 1 when a look-alike of the
first set passes or fewer than `--least-rewrites` of the rewrites do; what of the hard ones passes is for the gates
behind to stop.

    python -m bench.lookalikes --data ../shared/data
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._common.lookalikes import Pair, hard_look_alikes, look_alikes, rewrites
from bench._common.results import plain, write_results
from bench._common.tables import Cell, print_table
from retrieval.answers.guard import compare, read_facts
from retrieval.answers.question import normalise


@dataclass(frozen=True, slots=True)
class Judged:
    """A pair, and why it was refused; empty when it passes."""

    pair: Pair
    refused: str
    equal: bool  # after normalisation, so that the guard was not asked


@dataclass(frozen=True, slots=True)
class Report:
    """Counts over one set of pairs."""

    pairs: int
    passed: int
    equal: int  # of those that passed
    passed_by_kind: Mapping[str, int]
    pairs_by_kind: Mapping[str, int]
    refused_for: Mapping[str, int]


def judge(pairs: Iterable[Pair]) -> list[Judged]:
    """Asks the guard about each pair, the first text stored and the second one asked."""
    return [_judged(pair) for pair in pairs]


def report_of(judged: Sequence[Judged]) -> Report:
    """Counts what passed."""
    passed = [one for one in judged if not one.refused]
    return Report(
        pairs=len(judged),
        passed=len(passed),
        equal=sum(one.equal for one in judged),
        passed_by_kind=Counter(one.pair.kind for one in passed),
        pairs_by_kind=Counter(one.pair.kind for one in judged),
        refused_for=Counter(one.refused for one in judged if one.refused),
    )


def main() -> None:
    """Runs the tool."""
    arguments = _arguments()
    alike = judge(look_alikes(arguments.data, arguments.count, arguments.seed))
    same = judge(rewrites(arguments.data, arguments.count, arguments.seed))
    hard = judge(hard_look_alikes(arguments.data, arguments.count, arguments.seed))
    reports = {"look-alikes": report_of(alike), "hard look-alikes": report_of(hard), "rewrites": report_of(same)}
    for title, report in reports.items():
        _print(title, report)
    _show("look-alikes that pass", [one for one in (*alike, *hard) if not one.refused], arguments.show)
    _show("rewrites that are refused", [one for one in same if one.refused], arguments.show)
    if arguments.json is not None:
        write_results(arguments.json, {title: plain(report) for title, report in reports.items()}, None)
    enough = reports["rewrites"].passed >= arguments.least_rewrites * reports["rewrites"].pairs
    sys.exit(0 if enough and not reports["look-alikes"].passed else 1)


def _judged(pair: Pair) -> Judged:
    equal = normalise(pair.text_a) == normalise(pair.text_b)
    refused = "" if equal else compare(read_facts(pair.text_b), read_facts(pair.text_a)).refused
    return Judged(pair, refused, equal)


def _print(title: str, report: Report) -> None:
    rows: list[list[Cell]] = [
        [kind, count, report.passed_by_kind.get(kind, 0), count - report.passed_by_kind.get(kind, 0)]
        for kind, count in report.pairs_by_kind.items()
    ]
    rows.append(["all", report.pairs, report.passed, report.pairs - report.passed])
    print_table(f"{title} ({report.equal} equal after normalisation)", ("kind", "pairs", "pass", "refused"), rows)


def _show(title: str, judged: Sequence[Judged], count: int) -> None:
    rows = [[one.pair.kind, one.refused, f"{one.pair.text_a!r} | {one.pair.text_b!r}"] for one in judged[:count]]
    if rows:
        print_table(f"{title}, {len(rows)} of {len(judged)}", ("kind", "reason", "texts"), rows)


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    made.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder of the handed sets")
    made.add_argument("--count", type=int, default=500, metavar="N", help="pairs of each set")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--least-rewrites", type=float, default=0.8, metavar="SHARE", help="that must pass")
    made.add_argument("--show", type=int, default=0, metavar="N", help="print so many pairs that went wrong")
    made.add_argument("--json", type=Path, metavar="FILE", help="write the results here")
    return made.parse_args()


if __name__ == "__main__":
    main()
