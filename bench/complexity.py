"""Judges the router's complexity: whether it tells questions whose best passage is wrong from the others.

Questions go through the request path, as configured. A question is hard here when the document of its best hit is not
relevant: what can be had without a model, and only one side of what makes a question hard. Shown is the area under the
ROC curve on the test questions: 0.5 is chance, 1 is perfect. `evidence` is the complexity without what the question's
words say. Besides, the weights are fitted anew: on the train questions of the sets named by --fit, each set weighing
the same.

    python -m bench.complexity SET SET SET SET --fit squad-sub --fit nq-mini --json bench/results/complexity.json
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from bench._common import options
from bench._common.beir import BeirSet, Split, read_set, split_of
from bench._common.engines import open_encoders
from bench._common.pipelines import KEY, index_documents, open_request_path
from bench._common.ranking_curves import fit_logistic, roc_area
from bench._common.results import write_results
from bench._common.tables import print_table, say
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.routing.complexity import Features, features, hardness
from retrieval.routing.question_kind import QuestionKind
from retrieval.settings import Settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Found, RetrieveRequest

_PATIENCE_S = 3600.0
_FITTED = ("top_score", "lead", "intercept")


@dataclass(frozen=True, slots=True)
class Seen:
    """A question as the router sees it, and whether the document of its best hit is not relevant."""

    set_name: str
    split: Split
    features: Features
    missed: bool


def main() -> None:
    """Runs the tool."""
    arguments = _arguments()
    settings = options.settings(arguments, {"index.kind": "exact"})
    sets = [read_set(folder, arguments.qrels).part(Split.ALL, arguments.limit) for folder in arguments.sets]
    seen = asyncio.run(_see_sets(settings, sets, arguments.cache))
    areas = {each.name: _areas([one for one in seen if one.set_name == each.name]) for each in sets}
    columns = list(next(iter(areas.values())))
    print_table("area under the ROC curve", ["set", *columns], [(name, *row.values()) for name, row in areas.items()])
    weights = _fit([one for one in seen if one.set_name in arguments.fit])
    if weights:
        print_table("fitted anew", list(weights), [tuple(weights.values())])
    if arguments.json:
        write_results(arguments.json, {"areas": areas, "fitted": weights}, settings)


def _arguments() -> argparse.Namespace:
    made = options.parser(__doc__)
    options.add_set_options(made, Split.ALL)
    made.add_argument("--fit", action="append", default=[], metavar="SET", help="a set that weights are fitted on")
    return made.parse_args()


async def _see_sets(settings: Settings, sets: Sequence[BeirSet], cache: Path) -> list[Seen]:
    seen: list[Seen] = []
    async with open_encoders(settings, cache) as encoders:
        for source in sets:
            async with open_request_path(settings, encoders, encoders.cached) as path:
                await index_documents(path.catalog, source.documents, {}, encoders, encoders.cached)
                thresholds = resolve(settings, Overrides(cache=False))
                for question in source.questions:
                    request = RetrieveRequest(
                        question.query_id, KEY.tenant, KEY.collection, question.text, None, thresholds
                    )
                    reply = await path.pipeline.retrieve(request, StageClock(), Deadline.after(_PATIENCE_S))
                    found = Found(reply.hits, reply.context, reply.epoch)
                    best = reply.hits[0].passage.document_id if reply.hits else ""
                    looks = features(question.text, found, in_conversation=False)
                    missed = question.relevant.get(best, 0) <= 0
                    seen.append(Seen(source.name, split_of(question.query_id), looks, missed))
            say(f"{source.name}: {len(source.questions):,} questions")
    return seen


def _areas(seen: Sequence[Seen]) -> Mapping[str, float]:
    """Returns how many questions are judged, the share of misses among them, and areas by what predicts them."""
    judged = [one for one in seen if one.split is Split.TEST]
    missed = np.array([one.missed for one in judged])
    bare = [replace(one.features, kind=QuestionKind.LOOKUP, words=0) for one in judged]
    return {
        "questions": len(judged),
        "missed": float(missed.mean()) if judged else 0.0,
        "top score": roc_area(np.array([-one.features.top_score for one in judged]), missed),
        "lead": roc_area(np.array([-one.features.lead for one in judged]), missed),
        "evidence": roc_area(np.array([hardness(each) for each in bare]), missed),
        "complexity": roc_area(np.array([hardness(one.features) for one in judged]), missed),
    }


def _fit(seen: Sequence[Seen]) -> Mapping[str, float]:
    train = [one for one in seen if one.split is Split.TRAIN]
    if not train:
        return {}
    inputs: NDArray[np.float64] = np.array([(one.features.top_score, one.features.lead) for one in train])
    names = [one.set_name for one in train]
    shares = np.array([1.0 / names.count(name) for name in names])
    found = fit_logistic(inputs, np.array([one.missed for one in train]), shares * len(train) / shares.sum())
    return dict(zip(_FITTED, found.tolist(), strict=True))


if __name__ == "__main__":
    main()
