"""Makes a trace with a seed and prints what it is like: requests in conversations, while documents change.

Questions are drawn by Zipf's law; asked again, a question comes in the same words, in a harmless rewrite, in a
paraphrase of the set, or as a look-alike that asks something else: made of it, or about the same document. For every
50 requests a document changes, a hot one as a rule. Each request knows which question it asks and which version of
the answer is right, so that whatever a cache serves can be judged right, stale or wrong.

    python -m bench.traces --data ../shared/data --set squad-sub --seed 1 --out trace.jsonl
"""

from __future__ import annotations

import argparse
from pathlib import Path

from bench._common.tables import print_table
from bench._common.traces.events import Law, Trace, save
from bench._common.traces.figures import Figures, figures_of
from bench._common.traces.making import make_trace
from bench._common.traces.questions import read_trace_questions


def main() -> None:
    """Runs the tool."""
    arguments = _arguments()
    law = Law(requests=arguments.requests, zipf=arguments.zipf)
    trace = trace_of(arguments.data / arguments.set, law, arguments.seed)
    if arguments.out is not None:
        save(trace, arguments.out)
    _print(trace, figures_of(trace))


def trace_of(folder: Path, law: Law, seed: int) -> Trace:
    """Makes a trace over a set in BEIR's layout: squad-sub, docs-faq, or another without known phrasings.

    Raises:
        FileNotFoundError: a file of the set is missing.
        ValueError: the set holds too few questions.
    """
    read, questions = read_trace_questions(folder)
    return make_trace(read, questions, law, seed)


def _print(trace: Trace, figures: Figures) -> None:
    rows: list[tuple[str, int | float]] = [
        ("requests", figures.requests),
        ("conversations", figures.conversations),
        ("unique texts", figures.unique_texts),
        ("unique questions", figures.unique_questions),
        *((f"share: {kind}", share) for kind, share in figures.kinds.items()),
        ("share that exact keys can save", figures.exact_reusable),
        ("share that anything can save", figures.reusable),
        ("Zipf exponent, fitted", figures.zipf),
        *((f"writes: {name}", count) for name, count in sorted(figures.writes.items())),
        ("answers that writes changed", figures.changed_questions),
    ]
    print_table(f"{trace.set_name}, seed {trace.seed}", ("", "value"), rows)


def _arguments() -> argparse.Namespace:
    made = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    made.add_argument("--data", type=Path, required=True, metavar="DIR", help="the folder of the handed sets")
    made.add_argument("--set", default="squad-sub", metavar="NAME", help="a set in it")
    made.add_argument("--seed", type=int, default=1)
    made.add_argument("--requests", type=int, default=Law().requests, metavar="N")
    made.add_argument("--zipf", type=float, default=Law().zipf, metavar="S", help="exponent of the law")
    made.add_argument("--out", type=Path, metavar="FILE", help="write the trace here, as JSON lines")
    return made.parse_args()


if __name__ == "__main__":
    main()
