"""Measures late interaction: quality against bytes a passage over many codings, and the time that scoring takes.

The best hybrid candidates of each question are scored from token vectors of 32 to 384 dimensions in 32, 8, 4 or 2 bits
each, of all tokens or with equal ones pooled or rare ones alone. Projections are fitted here, to passages that no set
holds; the one that ships with the model is judged beside them. Bytes are those of other passages of the same file.
Questions are weighed in three ways on the default coding. Last, a collection of those passages is built with Qdrant
Edge, and the index's scoring and the whole stage `rerank` are timed on the same questions.

    python -m bench.late SET SET SET --passages FILE --json bench/results/late.json
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench._common import options
from bench._common.beir import BeirSet, Split, read_set
from bench._common.engines import Encoders, open_bare, open_encoders
from bench._common.late.curve import SERVED_WEIGHING, Quality, SetQuality, judge_set, summary
from bench._common.late.report import Counted, Point, Report, Weighed, plot_report, print_report
from bench._common.late.scoring import Scoring, measure_scoring
from bench._common.late.sets import gather_set
from bench._common.late.states import mean_tokens
from bench._common.late.variants import DEFAULT, Arm, Variant, arms_of, full_precision, variants
from bench._common.loops import run
from bench._common.passages import read_passages
from bench._common.results import plain, write_results
from bench._common.tables import say
from encoders.dense import OnnxDenseEncoder
from encoders.types import TextKind
from indexers.types import Document
from rerank.calibrate import Mixture
from retrieval.settings import Settings

_LIMIT = 100


@dataclass(frozen=True, slots=True)
class _Passages:
    """Two parts of one file."""

    indexed: Sequence[Document]  # whose bytes and times are measured
    fitted: Sequence[Document]  # that projections are fitted to


def main() -> None:
    """Runs the tool."""
    arguments = _arguments()
    settings = options.settings(arguments, {"index.kind": "edge"})
    report = run(_measure(arguments, settings))
    print_report(report)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, plain(report), settings)
    if outputs.plot_file:
        plot_report(outputs.plot_file, report)


def _arguments() -> argparse.Namespace:
    made = options.parser(__doc__)
    options.add_set_options(made, Split.TEST)
    made.set_defaults(limit=_LIMIT)
    made.add_argument("--passages", type=Path, required=True, metavar="FILE", help="JSON lines of documents; .gz too")
    made.add_argument("--indexed", type=int, default=3_000, metavar="N", help="documents, for bytes and times")
    made.add_argument("--fitted", type=int, default=1_000, metavar="N", help="further documents, to fit projections to")
    made.add_argument("--timed", type=int, default=200, metavar="N", help="questions whose scoring is timed, at most")
    return made.parse_args()


async def _measure(arguments: argparse.Namespace, settings: Settings) -> Report:
    sets = [read_set(folder, arguments.qrels).part(arguments.split, arguments.limit) for folder in arguments.sets]
    read = read_passages(arguments.passages, arguments.indexed + arguments.fitted)
    passages = _Passages(read[: arguments.indexed], read[arguments.indexed :])
    bare = open_bare(settings)
    async with open_encoders(settings, arguments.cache) as encoders:
        arms = await asyncio.to_thread(_arms, bare, _texts(passages.fitted, encoders))
        judged = {source.name: await _judge(source, encoders, bare, arms, settings) for source in sets}
        items = bare.tokenize(_texts(passages.indexed, encoders), TextKind.PASSAGE)
        tokens = [mean_tokens(items, arm) for arm in arms]
        counted = Counted(len(passages.indexed), len(items))
        scoring = await _scoring(settings, encoders, passages.indexed, _spread(sets, arguments.timed))
    points = _points(judged, arms, tokens)
    return _report(judged, points, counted, scoring)


def _texts(documents: Sequence[Document], encoders: Encoders) -> list[str]:
    return [chunk.embedding_text for document in documents for chunk in encoders.chunker.chunk(document)]


def _arms(bare: OnnxDenseEncoder, texts: Sequence[str]) -> list[Arm]:
    arms = arms_of(bare, texts, variants(bare.dim), bare.projection)
    say(f"{len(arms)} variants; projections fitted to {len(texts):,} passages")
    return arms


async def _judge(
    source: BeirSet, encoders: Encoders, bare: OnnxDenseEncoder, arms: Sequence[Arm], settings: Settings
) -> SetQuality:
    gathered = await gather_set(source, encoders, bare, arms[0].projection.token_weights, settings)
    say(f"{source.name}: {len(gathered.questions)} questions, {len(gathered.passages.ends):,} candidates")
    rerank = settings.rerank
    mixture = Mixture(rerank.first_stage_weight, rerank.late.weight, rerank.cross_encoder_weight)
    return await asyncio.to_thread(judge_set, gathered, arms, _default(arms), mixture)


def _default(arms: Sequence[Arm]) -> Arm:
    """Returns the arm that questions are weighed with: the default coding, or the nearest that the model allows."""
    return next((arm for arm in arms if arm.variant == DEFAULT), arms[0])


def _spread(sets: Sequence[BeirSet], most: int) -> list[str]:
    questions = [question.text for source in sets for question in source.questions]
    return questions[:: max(1, -(-len(questions) // most))]


async def _scoring(
    settings: Settings, encoders: Encoders, documents: Sequence[Document], questions: Sequence[str]
) -> Scoring | None:
    if encoders.dense.codec is None:
        return None
    return await measure_scoring(settings, encoders, documents, questions)


def _points(judged: Mapping[str, SetQuality], arms: Sequence[Arm], tokens: Sequence[float]) -> tuple[Point, ...]:
    full = _of_all(judged, full_precision(arms[0].variant.dim))
    return tuple(
        Point.of(arm, count, summary(_of_all(judged, arm.variant), full))
        for arm, count in zip(arms, tokens, strict=True)
    )


def _of_all(judged: Mapping[str, SetQuality], variant: Variant) -> list[Quality]:
    return [one.variants[variant] for one in judged.values()]


def _report(
    judged: Mapping[str, SetQuality], points: tuple[Point, ...], counted: Counted, scoring: Scoring | None
) -> Report:
    sets = list(judged.values())
    served = [one.weighings[SERVED_WEIGHING] for one in sets]
    return Report(
        questions={name: len(one.hybrid) for name, one in judged.items()},
        passages=counted,
        hybrid=float(np.mean([one.hybrid.mean() for one in sets])),
        points=points,
        weighings=tuple(
            Weighed(name, summary([one.weighings[name] for one in sets], served)) for name in sets[0].weighings
        ),
        sets={name: _means(one) for name, one in judged.items()},
        scoring=scoring,
    )


def _means(judged: SetQuality) -> Mapping[str, float]:
    """Returns the nDCG@10 of one set by hybrid search alone, and by the combined score of each variant."""
    combined = {variant.label: float(quality.combined.mean()) for variant, quality in judged.variants.items()}
    return {"hybrid": float(judged.hybrid.mean()), **combined}


if __name__ == "__main__":
    main()
