"""Judges retrieval on sets in BEIR's layout, through the real request path.

Documents go through the indexer, chunking included, into an Index; every question goes through the pipeline, once for
each mode. The chunks that come back stand for their documents, each by its best one. Modes are `dense`, `sparse`
(BM25), `hybrid` (the convex combination, by the weight that is best for it alone), `rrf` (hybrid by reciprocal ranks),
`late` (fusion as configured, then late interaction) and `rerank` (all that is configured, the cross-encoder too). The
recall of the last two counts the reranked hits only. Encodings are kept between runs, so trying another setting takes
seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from bench._common import options
from bench._common.beir import BeirSet, Question, Split, read_set
from bench._common.engines import Encoders, open_encoders, open_reranker
from bench._common.metrics import MRR_CUT, NDCG_CUT, RECALL_CUT, QueryMetrics, best_documents, judge
from bench._common.pipelines import KEY, RequestPath, field_type, index_documents, open_request_path
from bench._common.plots import Titles, plot_bars
from bench._common.results import Json, Outputs, write_results
from bench._common.statistics import Difference, mean_difference
from bench._common.tables import Cell, print_table, say
from indexers.filters import Filter, MatchAny
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.pipeline import Pipeline
from retrieval.settings import Settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Fusion, Mode, RetrieveRequest, Thresholds

_WEIGHT_ALONE = 0.55  # of the dense branch, when nothing comes after fusion (bench.tune)
MODES: Mapping[str, Overrides] = {
    "dense": Overrides(mode=Mode.DENSE, rerank=False),
    "sparse": Overrides(mode=Mode.SPARSE, rerank=False),
    "hybrid": Overrides(mode=Mode.HYBRID, fusion=Fusion.CONVEX, rerank=False, dense_weight=_WEIGHT_ALONE),
    "rrf": Overrides(mode=Mode.HYBRID, fusion=Fusion.RRF, rerank=False),
    "late": Overrides(mode=Mode.HYBRID, fusion=Fusion.CONVEX, rerank=True),
    "rerank": Overrides(mode=Mode.HYBRID, fusion=Fusion.CONVEX, rerank=True),
}
_COMPARED = "hybrid"
_HITS = 200  # enough chunks for 100 documents
_CONTEXT_TOKENS = 16  # contexts are not judged here
_PATIENCE_S = 3600.0

Judged = Mapping[str, Mapping[str, Sequence[QueryMetrics]]]  # set -> mode -> one a question


@dataclass(frozen=True, slots=True)
class _Run:
    settings: Settings
    modes: tuple[str, ...]
    filter_field: str


def main() -> None:
    """Runs the tool."""
    arguments = _arguments()
    settings = options.settings(arguments, _flags(arguments))
    run = _Run(settings, tuple(arguments.modes.split(",")), arguments.filter_field)
    unknown = set(run.modes) - set(MODES)
    if unknown:
        raise SystemExit(f"unknown modes {', '.join(sorted(unknown))}; choose from {', '.join(MODES)}")
    sets = [read_set(folder, arguments.qrels).part(arguments.split, arguments.limit) for folder in arguments.sets]
    judged = asyncio.run(_judge_sets(run, sets, arguments.cache))
    differences = _differences(judged)
    _print(judged, differences)
    _write(options.outputs(arguments), judged, differences, settings)


def _arguments() -> argparse.Namespace:
    made = options.parser(__doc__)
    options.add_set_options(made, Split.ALL)
    made.add_argument("--modes", default="dense,sparse,rrf,hybrid,late", help=f"of {', '.join(MODES)}")
    made.add_argument("--filter-field", default="", metavar="NAME", help="filter each query to its own value of it")
    made.add_argument("--index", choices=("exact", "edge"), default="exact", help="what searches")
    made.add_argument(
        "--dense-weight", type=float, metavar="W", help="weight of the dense branch in `late` and `rerank`"
    )
    made.add_argument("--late-weight", type=float, metavar="W", help="weight of late interaction; hybrid has the rest")
    made.add_argument("--model", default="", metavar="DIR", help="the cross-encoder of the mode `rerank`")
    made.add_argument("--depth", type=int, metavar="N", help="pairs of a question that it scores")
    return made.parse_args()


def _flags(arguments: argparse.Namespace) -> Mapping[str, object]:
    flags: dict[str, object] = {"index.kind": arguments.index, "retrieval.max_top_k": _HITS}
    if arguments.dense_weight is not None:
        flags["retrieval.dense_weight"] = arguments.dense_weight
    if arguments.late_weight is not None:
        flags |= {"rerank.late.weight": arguments.late_weight, "rerank.first_stage_weight": 1 - arguments.late_weight}
    if arguments.model:
        flags["rerank.model"] = arguments.model
    if arguments.depth:
        flags["rerank.depth"] = arguments.depth
    return flags


async def _judge_sets(run: _Run, sets: Sequence[BeirSet], cache: Path) -> Judged:
    judged: dict[str, Mapping[str, Sequence[QueryMetrics]]] = {}
    async with open_encoders(run.settings, cache) as encoders:
        for source in sets:
            judged[_label(source, run)] = await _judge_set(run, source, encoders)
    return judged


def _label(source: BeirSet, run: _Run) -> str:
    return f"{source.name}/{run.filter_field}" if run.filter_field else source.name


async def _judge_set(run: _Run, source: BeirSet, encoders: Encoders) -> Mapping[str, Sequence[QueryMetrics]]:
    reranker = await open_reranker(run.settings, encoders) if "rerank" in run.modes else None
    async with open_request_path(run.settings, encoders, encoders.cached, reranker) as path:
        started = time.perf_counter()
        fields = {}
        if run.filter_field:
            metadatas = [document.metadata for document in source.documents]
            fields = {run.filter_field: field_type(run.filter_field, metadatas)}
        _, report = await index_documents(path.catalog, source.documents, fields, encoders, encoders.cached)
        counts, seconds = report.counts, time.perf_counter() - started
        say(f"{source.name}: {counts.written:,} documents, {counts.chunks:,} chunks in {seconds:.1f} s")
        for problem in report.failures:
            say(f"  left out: {problem.name}: {problem.reason}")
        return {mode: await _judge_mode(run, source, path, mode) for mode in run.modes}


async def _judge_mode(run: _Run, source: BeirSet, path: RequestPath, mode: str) -> Sequence[QueryMetrics]:
    started = time.perf_counter()
    thresholds = _thresholds(run.settings, mode)
    pipeline = path.pipeline if mode == "rerank" else path.without_cross_encoder
    judged = [await _judge_question(pipeline, question, thresholds, run.filter_field) for question in source.questions]
    say(f"  {mode}: {len(judged):,} questions in {time.perf_counter() - started:.1f} s")
    return judged


def _thresholds(settings: Settings, mode: str) -> Thresholds:
    # Every hit of a reranked list was reranked, so it is as long as the depth.
    hits = settings.rerank.depth if MODES[mode].rerank else _HITS
    return resolve(settings, replace(MODES[mode], top_k=hits, context_tokens=_CONTEXT_TOKENS, cache=False))


async def _judge_question(
    pipeline: Pipeline, question: Question, thresholds: Thresholds, filter_field: str
) -> QueryMetrics:
    request = RetrieveRequest(
        request_id=question.query_id,
        tenant=KEY.tenant,
        collection=KEY.collection,
        query=question.text,
        filter=_own_value(question, filter_field) if filter_field else None,
        thresholds=thresholds,
    )
    found = await pipeline.retrieve(request, StageClock(), Deadline.after(_PATIENCE_S))
    return judge(best_documents([hit.passage.document_id for hit in found.hits]), question.relevant)


def _own_value(question: Question, field: str) -> Filter | None:
    value = question.metadata.get(field)
    if value is None:
        return None
    return Filter(must=(MatchAny(field, value if isinstance(value, tuple) else (value,)),))


def _differences(judged: Judged) -> Mapping[str, Mapping[str, Difference]]:
    """Returns set -> mode -> hybrid minus that mode, in nDCG@10; `mean` is the mean over the sets."""
    arrays = {
        name: {mode: np.array([one.ndcg for one in values]) for mode, values in modes.items()}
        for name, modes in judged.items()
        if modes.get(_COMPARED)
    }
    others = [mode for mode in next(iter(arrays.values()), {}) if mode != _COMPARED]
    paired = {
        name: {mode: mean_difference([modes[_COMPARED] - modes[mode]]) for mode in others}
        for name, modes in arrays.items()
    }
    if len(arrays) > 1:
        paired["mean"] = {
            mode: mean_difference([modes[_COMPARED] - modes[mode] for modes in arrays.values()]) for mode in others
        }
    return paired


def _figures(values: Sequence[QueryMetrics]) -> dict[str, float | int]:
    count = max(1, len(values))
    return {
        f"ndcg@{NDCG_CUT}": round(sum(one.ndcg for one in values) / count, 4),
        f"mrr@{MRR_CUT}": round(sum(one.mrr for one in values) / count, 4),
        f"recall@{RECALL_CUT}": round(sum(one.recall for one in values) / count, 4),
        "queries": len(values),
    }


def _print(judged: Judged, differences: Mapping[str, Mapping[str, Difference]]) -> None:
    rows: list[list[Cell]] = [
        [name, mode, *_figures(values).values()] for name, modes in judged.items() for mode, values in modes.items()
    ]
    for mode in next(iter(judged.values())):
        figures = [_figures(modes[mode]) for modes in judged.values()]
        means = [float(np.mean([one[metric] for one in figures])) for metric in list(figures[0])[:-1]]
        rows.append(["mean", mode, *means, sum(int(one["queries"]) for one in figures)])
    columns = ["set", "mode", f"nDCG@{NDCG_CUT}", f"MRR@{MRR_CUT}", f"recall@{RECALL_CUT}", "queries"]
    print_table("Retrieval quality", columns, rows)
    compared: list[list[Cell]] = [
        [name, mode, one.mean, one.low, one.high, "yes" if one.certain else "no"]
        for name, modes in differences.items()
        for mode, one in modes.items()
    ]
    columns = ["set", "hybrid minus", "nDCG@10", "95 % from", "to", "certain"]
    print_table("Paired bootstrap, 10,000 resamples", columns, compared)


def _write(
    outputs: Outputs,
    judged: Judged,
    differences: Mapping[str, Mapping[str, Difference]],
    settings: Settings,
) -> None:
    if outputs.json_file:
        figures: dict[str, Json] = {
            name: {mode: _figures(values) for mode, values in modes.items()} for name, modes in judged.items()
        }
        figures["differences"] = {
            name: {f"{_COMPARED}-{mode}": _interval(one) for mode, one in modes.items()}
            for name, modes in differences.items()
        }
        write_results(outputs.json_file, figures, settings)
    if outputs.plot_file:
        modes = list(next(iter(judged.values())))
        series = {mode: [float(_figures(of_set[mode])["ndcg@10"]) for of_set in judged.values()] for mode in modes}
        plot_bars(outputs.plot_file, Titles("Retrieval quality", "", "nDCG@10"), list(judged), series)


def _interval(difference: Difference) -> Json:
    return {"mean": round(difference.mean, 4), "low": round(difference.low, 4), "high": round(difference.high, 4)}


if __name__ == "__main__":
    main()
