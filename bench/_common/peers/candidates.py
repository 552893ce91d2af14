"""The tasks: a set's questions with the passages that BM25 finds for them, and the same filled up to one length.

BM25 needs no model, so the tasks stay the same when encoders change. A passage is a whole document with its title.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from bench._common.beir import BeirSet, Question
from bench._common.peers.arms import Task
from encoders.bm25 import collect_statistics, query_vector
from encoders.terms import count_terms
from encoders.types import TokenCounter
from indexers.postings import build_postings

T = TypeVar("T")


def gather_tasks(source: BeirSet, count: int, depth: int) -> list[Task]:
    """Returns at most `count` questions, spread evenly over the set, with their `depth` best passages.

    Questions for which BM25 finds fewer than `depth` are left out.
    """
    texts = [f"{one.title}\n{one.text}" if one.title else one.text for one in source.documents]
    counts = [count_terms(text) for text in texts]
    statistics = collect_statistics(counts)
    postings = build_postings(counts, statistics)

    def task(question: Question) -> Task | None:
        scores = postings.scores(query_vector(count_terms(question.text), statistics))
        best = np.argsort(-scores, kind="stable")[:depth]
        if len(best) < depth or scores[best[-1]] <= 0.0:
            return None
        return Task(
            set_name=source.name,
            query=question.text,
            passages=tuple(texts[one] for one in best),
            documents=tuple(source.documents[one].document_id for one in best),
            relevant=dict(question.relevant),
        )

    found = (task(question) for question in spread(source.questions, count))
    return [one for one in found if one is not None]


def of_equal_length(task: Task, counter: TokenCounter, tokens: int) -> Task:
    """Fills passages up to at least `tokens` with those behind them, so that a limit cuts all alike.

    The filled passages judge nothing: the task has no relevant documents.
    """
    count = len(task.passages)
    filled = []
    for place, passage in enumerate(task.passages):
        text, behind = passage, place
        while counter.count(text) < tokens:
            behind += 1
            text = f"{text} {task.passages[behind % count]}"
        filled.append(text)
    return replace(task, passages=tuple(filled), relevant={})


def spread(items: Sequence[T], count: int) -> Sequence[T]:
    """Returns `count` items at even distances; all of them when there are no more."""
    return items[:: max(1, len(items) // count)][:count]
