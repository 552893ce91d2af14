"""Judges how follow-up questions are searched: as they are, rewritten by the rules, or after the last question.

Conversations are made of labelled questions (`bench._common.conversation.making`), so it is known what a follow-up
should find and how it would have been asked alone. `same` says whether its passage is that of the first question.
Besides, what the rules do to questions that stand alone: how many they change, and what that costs.
"""

from __future__ import annotations

import argparse
import asyncio
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bench._common import options
from bench._common.beir import BeirSet, Question, Split, read_set
from bench._common.conversation.arms import ARMS, rewritten
from bench._common.conversation.making import Exchange, exchanges, related, unrelated
from bench._common.engines import Encoders, open_encoders
from bench._common.metrics import best_documents, ndcg, recall
from bench._common.pipelines import KEY, RequestPath, index_documents, open_request_path
from bench._common.plots import Titles, plot_bars
from bench._common.results import Json, write_results
from bench._common.statistics import Difference, mean_difference
from bench._common.tables import Cell, print_table, say
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.settings import Settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import RetrieveRequest

_CUT = 10
_HITS = 50
_PATIENCE_S = 3600.0


@dataclass(frozen=True, slots=True)
class Found:
    """How well one search did."""

    recall: float
    ndcg: float


@dataclass(frozen=True, slots=True)
class Harm:
    """What the rules do to questions that stand alone."""

    questions: int
    changed: int
    before: float  # recall of the changed ones, as asked
    after: float
    examples: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Judged:
    """The results on one set."""

    groups: Mapping[str, Mapping[str, Sequence[Found]]]  # form and kind of pair -> arm -> one a conversation
    leaning: Mapping[str, int]  # of a group, those that the rules changed
    lost: tuple[str, ...]  # follow-ups that the rules made worse than they were
    harm: Mapping[str, Harm]


class Searcher:
    """Searches one collection, each text once."""

    def __init__(self, path: RequestPath, settings: Settings) -> None:
        self._pipeline = path.without_cross_encoder
        self._thresholds = resolve(settings, Overrides(top_k=_HITS, context_tokens=16, cache=False))
        self._known: dict[str, list[str]] = {}

    async def judge(self, text: str, question: Question) -> Found:
        """Searches a text and judges what comes by the labels of a question."""
        if text not in self._known:
            request = RetrieveRequest("bench", KEY.tenant, KEY.collection, text, None, self._thresholds)
            found = await self._pipeline.retrieve(request, StageClock(), Deadline.after(_PATIENCE_S))
            self._known[text] = best_documents([hit.passage.document_id for hit in found.hits])
        ranking = self._known[text]
        return Found(recall(ranking, question.relevant, _CUT), ndcg(ranking, question.relevant, _CUT))


def main() -> None:
    """Runs the tool."""
    made = options.parser(__doc__)
    options.add_set_options(made, Split.ALL)
    made.set_defaults(limit=100)
    arguments = made.parse_args()
    settings = options.settings(arguments, {"index.kind": "exact", "retrieval.max_top_k": _HITS})
    judged = asyncio.run(_judge_sets(arguments, settings))
    _print(judged)
    outputs = options.outputs(arguments)
    if outputs.json_file:
        write_results(outputs.json_file, _json(judged), settings)
    if outputs.plot_file:
        _plot(outputs.plot_file, judged)


async def _judge_sets(arguments: argparse.Namespace, settings: Settings) -> Mapping[str, Judged]:
    judged: dict[str, Judged] = {}
    async with open_encoders(settings, arguments.cache) as encoders:
        for folder in arguments.sets:
            source = read_set(Path(folder), arguments.qrels).part(arguments.split)
            judged[source.name] = await _judge_set(source, arguments.limit, settings, encoders)
    return judged


async def _judge_set(source: BeirSet, limit: int, settings: Settings, encoders: Encoders) -> Judged:
    async with open_request_path(settings, encoders, encoders.cached) as path:
        started = time.perf_counter()
        await index_documents(path.catalog, source.documents, {}, encoders, encoders.cached)
        say(f"{source.name}: indexed in {time.perf_counter() - started:.1f} s")
        searcher = Searcher(path, settings)
        groups: dict[str, dict[str, list[Found]]] = defaultdict(lambda: {arm: [] for arm in ARMS})
        leaning: dict[str, int] = defaultdict(int)
        lost: list[str] = []
        for one in exchanges(source, limit):
            group = f"{one.form}, {'same' if one.same_passage else 'other'} passage"
            found = {arm: await searcher.judge(text(one), one.gold) for arm, text in ARMS.items()}
            for arm, result in found.items():
                groups[group][arm].append(result)
            leaning[group] += ARMS["rules"](one) != one.follow_up
            if found["rules"].ndcg < found["as it is"].ndcg:
                lost.append(_described(one))
        harm = {name: await _harm(searcher, pairs) for name, pairs in _standing(source, limit).items()}
        say(f"{source.name}: judged after {time.perf_counter() - started:.1f} s")
        return Judged(groups, leaning, tuple(lost), harm)


def _standing(source: BeirSet, limit: int) -> Mapping[str, Sequence[tuple[str, Question]]]:
    return {"after one about the same": related(source, 4 * limit), "after any other": unrelated(source, 4 * limit)}


async def _harm(searcher: Searcher, pairs: Sequence[tuple[str, Question]]) -> Harm:
    texts = [(rewritten(first, question.text), question) for first, question in pairs]
    changed = [(text, question) for text, question in texts if text != question.text]
    before = [(await searcher.judge(question.text, question)).recall for _, question in changed]
    after = [(await searcher.judge(text, question)).recall for text, question in changed]
    return Harm(len(pairs), len(changed), _mean(before), _mean(after), tuple(text for text, _ in changed[:12]))


def _described(one: Exchange) -> str:
    return f"{one.first} | {one.follow_up} | {ARMS['rules'](one)}"


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def _compared(arms: Mapping[str, Sequence[Found]], other: str) -> Difference:
    return mean_difference([np.array([a.ndcg - b.ndcg for a, b in zip(arms["rules"], arms[other], strict=True)])])


def _print(judged: Mapping[str, Judged]) -> None:
    rows: list[list[Cell]] = [
        [name, group, arm, _mean([one.recall for one in found]), _mean([one.ndcg for one in found]), len(found)]
        for name, of_set in judged.items()
        for group, arms in of_set.groups.items()
        for arm, found in arms.items()
    ]
    print_table("Follow-ups", ["set", "follow-up", "searched", "recall@10", "nDCG@10", "count"], rows)
    compared: list[list[Cell]] = []
    for name, of_set in judged.items():
        for group, arms in of_set.groups.items():
            share = of_set.leaning[group] / len(arms["rules"])
            for other in ("as it is", "concatenated"):
                one = _compared(arms, other)
                compared.append([name, group, share, other, one.mean, one.low, one.high])
    columns = ["set", "follow-up", "changed", "rules minus", "nDCG@10", "95 % from", "to"]
    print_table("Paired bootstrap, 10,000 resamples", columns, compared)
    harms: list[list[Cell]] = [
        [name, kind, one.questions, one.changed, one.before, one.after]
        for name, of_set in judged.items()
        for kind, one in of_set.harm.items()
    ]
    columns = ["set", "standing alone", "questions", "changed", "recall@10 as asked", "changed by rules"]
    print_table("Questions that stand alone", columns, harms)
    for name, of_set in judged.items():
        say(f"{name}: {len(of_set.lost)} follow-ups lost by the rules, such as")
        for line in (*of_set.lost[:8], *(f"needless: {text}" for one in of_set.harm.values() for text in one.examples)):
            say(f"  {line}")


def _plot(path: Path, judged: Mapping[str, Judged]) -> None:
    groups = [(f"{name}\n{group}", arms) for name, of_set in judged.items() for group, arms in of_set.groups.items()]
    series = {arm: [_mean([one.ndcg for one in arms[arm]]) for _, arms in groups] for arm in ARMS}
    plot_bars(path, Titles("Follow-up questions", "", f"nDCG@{_CUT}"), [label for label, _ in groups], series)


def _json(judged: Mapping[str, Judged]) -> dict[str, Json]:
    return {
        name: {
            "follow_ups": {
                group: {
                    arm: {
                        "recall@10": round(_mean([one.recall for one in found]), 4),
                        "ndcg@10": round(_mean([one.ndcg for one in found]), 4),
                        "conversations": len(found),
                    }
                    for arm, found in arms.items()
                }
                | {"changed_by_rules": of_set.leaning[group]}
                for group, arms in of_set.groups.items()
            },
            "standing_alone": {
                kind: {
                    "questions": one.questions,
                    "changed": one.changed,
                    "changed_recall@10_before": round(one.before, 4),
                    "changed_recall@10_after": round(one.after, 4),
                }
                for kind, one in of_set.harm.items()
            },
            "lost_by_rules": list(of_set.lost),
        }
        for name, of_set in judged.items()
    }


if __name__ == "__main__":
    main()
