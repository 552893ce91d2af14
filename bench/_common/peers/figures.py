"""Makes the figures of `bench.peers` from what the arms gave and took. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench._common.peers.arms import OURS, REFERENCE, Task
from bench._common.peers.quality import ndcg_of, places_by_set
from bench._common.peers.turns import Measured
from bench._common.statistics import RESAMPLES, SEED


@dataclass(frozen=True, slots=True)
class Ratio:
    """How many times an arm's time is ours: over all tasks, its 95 % interval, and the worst round for us."""

    value: float
    low: float
    high: float
    worst_round: float


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """One arm's speed and quality."""

    weights: str
    software: str
    p50_ms: float  # of a task
    total_ms: float  # of all tasks, each at the median of its rounds
    ratio: Ratio  # to ours
    by_set: Mapping[str, float]  # the same ratio in each set
    ndcg: float | None  # at 10, mean over the sets; None when the task judges nothing
    agreement: float | None  # with fp32 torch: Pearson of the logits, or the mean cosine; None without that arm
    lowest: float | None  # of the tasks or texts


def pair_figures(tasks: Sequence[Task], arms: Sequence[Measured]) -> dict[str, ArmFigures]:
    """Returns the figures of arms that gave logits; an arm agrees with the reference by Pearson's correlation."""
    reference = _named(arms, REFERENCE)
    return {
        arm.arm.name: _figures(tasks, arms, arm, _mean_ndcg(tasks, arm), _correlations(arm, reference)) for arm in arms
    }


def text_figures(tasks: Sequence[Task], arms: Sequence[Measured]) -> dict[str, ArmFigures]:
    """Returns the figures of arms that gave vectors; an arm agrees with the reference by the cosine."""
    reference = _named(arms, REFERENCE)
    return {arm.arm.name: _figures(tasks, arms, arm, None, _cosines(arm, reference)) for arm in arms}


def padding_by_set(tasks: Sequence[Task], lengths: Callable[[Task], Sequence[int]]) -> dict[str, float]:
    """Returns how many times the tokens of a set's tasks one batch a task computes when it pads to the longest."""
    tokens = [np.array(lengths(task)) for task in tasks]
    padded = [one.max() * len(one) for one in tokens]
    return {
        name: float(sum(padded[one] for one in places) / sum(tokens[one].sum() for one in places))
        for name, places in places_by_set(tasks).items()
    }


def ratio_of(theirs: NDArray[np.int64], ours: NDArray[np.int64], resamples: int = RESAMPLES) -> Ratio:
    """Compares times [rounds, tasks]: sums over the tasks of their medians, bootstrapped over the tasks."""
    their_tasks, our_tasks = np.median(theirs, axis=0), np.median(ours, axis=0)
    drawn = np.random.default_rng(SEED).integers(0, len(our_tasks), (resamples, len(our_tasks)))
    low, high = np.quantile(their_tasks[drawn].sum(axis=1) / our_tasks[drawn].sum(axis=1), (0.025, 0.975))
    rounds = theirs.sum(axis=1) / ours.sum(axis=1)
    return Ratio(float(their_tasks.sum() / our_tasks.sum()), float(low), float(high), float(rounds.min()))


def _figures(
    tasks: Sequence[Task],
    arms: Sequence[Measured],
    arm: Measured,
    judged: float | None,
    agreement: NDArray[np.float64],
) -> ArmFigures:
    ours = _named(arms, OURS)
    if ours is None:
        raise ValueError(f"there is no arm {OURS} to compare with")
    medians = np.median(arm.spent_ns, axis=0) / 1e6
    return ArmFigures(
        weights=arm.arm.weights,
        software=arm.arm.software,
        p50_ms=float(np.median(medians)),
        total_ms=float(medians.sum()),
        ratio=ratio_of(arm.spent_ns, ours.spent_ns),
        by_set={
            name: ratio_of(arm.spent_ns[:, places], ours.spent_ns[:, places], 1).value
            for name, places in places_by_set(tasks).items()
        },
        ndcg=judged,
        agreement=float(agreement.mean()) if len(agreement) else None,
        lowest=float(agreement.min()) if len(agreement) else None,
    )


def _named(arms: Sequence[Measured], name: str) -> Measured | None:
    return next((arm for arm in arms if arm.arm.name == name), None)


def _mean_ndcg(tasks: Sequence[Task], arm: Measured) -> float | None:
    if not all(task.relevant for task in tasks):
        return None
    judged = [ndcg_of(task, logits) for task, logits in zip(tasks, arm.values, strict=True)]
    return float(np.mean([np.mean([judged[one] for one in places]) for places in places_by_set(tasks).values()]))


def _correlations(arm: Measured, reference: Measured | None) -> NDArray[np.float64]:
    pairs = zip(arm.values, reference.values, strict=True) if reference else ()
    return np.array([np.corrcoef(ours.ravel(), theirs.ravel())[0, 1] for ours, theirs in pairs])


def _cosines(arm: Measured, reference: Measured | None) -> NDArray[np.float64]:
    if reference is None:
        return np.empty(0)
    ours, theirs = np.concatenate(arm.values), np.concatenate(reference.values)
    lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(theirs, axis=1)
    cosines: NDArray[np.float64] = np.vecdot(ours, theirs) / lengths
    return cosines
