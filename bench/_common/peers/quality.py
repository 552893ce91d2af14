"""Judges the arm that is ours and the one in fp32 on more questions than there is time to time all arms on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench._common.metrics import NDCG_CUT, best_documents, ndcg
from bench._common.peers.arms import OURS, REFERENCE, Arm, Task
from bench._common.statistics import Difference, mean_difference


@dataclass(frozen=True, slots=True)
class Judged:
    """nDCG@10 of the reranked candidates, means over the sets; the interval is over the questions."""

    questions: int
    ours: float
    fp32: float
    difference: Difference


async def judge(arms: Sequence[Arm], tasks: Sequence[Task]) -> Judged | None:
    """Runs both arms once on each task; None when one of them is missing or there is nothing to judge."""
    by_name = {arm.name: arm for arm in arms}
    if not tasks or REFERENCE not in by_name or OURS not in by_name:
        return None
    ours, fp32 = [], []
    for task in tasks:
        ours.append(ndcg_of(task, (await by_name[OURS].run(task)).values))
        fp32.append(ndcg_of(task, (await by_name[REFERENCE].run(task)).values))
    return compare(tasks, ours, fp32)


def compare(tasks: Sequence[Task], ours: Sequence[float], fp32: Sequence[float]) -> Judged:
    """Returns the means over the sets, and the difference with its interval; one figure a task."""
    sets = places_by_set(tasks).values()
    differences = [np.array([ours[one] - fp32[one] for one in places]) for places in sets]
    means = [float(np.mean([np.mean([values[one] for one in places]) for places in sets])) for values in (ours, fp32)]
    return Judged(len(tasks), means[0], means[1], mean_difference(differences))


def ndcg_of(task: Task, logits: NDArray[np.float64]) -> float:
    """Returns nDCG@10 of the candidates in the order of their logits; equal ones keep the order they came in."""
    order = np.argsort(-logits, kind="stable")
    return ndcg(best_documents([task.documents[one] for one in order]), task.relevant, NDCG_CUT)


def places_by_set(tasks: Sequence[Task]) -> dict[str, list[int]]:
    """Returns where the tasks of each set stand."""
    found: dict[str, list[int]] = {}
    for place, task in enumerate(tasks):
        found.setdefault(task.set_name, []).append(place)
    return found
