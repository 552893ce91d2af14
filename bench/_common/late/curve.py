"""Judges variants of late interaction, alone and together with the first stage, by nDCG@10."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench._common.fusions import pool_ndcg
from bench._common.late.sets import Asked, LateSet
from bench._common.late.states import TokenCodes, codes_of
from bench._common.late.variants import Arm, Variant
from bench._common.statistics import Difference, mean_difference
from encoders.cpu import one_blas_thread, usable_cpus
from encoders.late.tokens import TokenProjection
from rerank.calibrate import Mixture

Weighing = Callable[[NDArray[np.float32]], NDArray[np.float32]]

WEIGHINGS: Mapping[str, Weighing] = {
    "none": lambda weights: (weights > 0).astype(np.float32),
    "square root of IDF": np.sqrt,
    "IDF": lambda weights: weights,
}
SERVED_WEIGHING = "IDF"


@dataclass(frozen=True, slots=True)
class Quality:
    """The nDCG@10 of each question of a set, [questions] each."""

    late: NDArray[np.float64]  # by late interaction alone
    combined: NDArray[np.float64]  # by the score that is served


@dataclass(frozen=True, slots=True)
class SetQuality:
    """All that was judged on one set."""

    hybrid: NDArray[np.float64]  # [questions], nDCG@10 before late interaction
    variants: Mapping[Variant, Quality]
    weighings: Mapping[str, Quality]


@dataclass(frozen=True, slots=True)
class Summary:
    """Means over the sets; the difference is of the combined score, to what it is compared with."""

    late: float
    combined: float
    difference: Difference


def judge_set(source: LateSet, arms: Sequence[Arm], weighed: Arm, mixture: Mixture) -> SetQuality:
    """Judges every arm, and every weighing of the question's tokens with the codes of the arm `weighed`."""
    codes = codes_of(source.passages, weighed)
    hybrid = [pool_ndcg(one.candidates.pool, one.candidates.first_stage[np.newaxis])[0] for one in source.questions]

    def judge(arm: Arm) -> Quality:
        return _quality(source, arm, codes_of(source.passages, arm), arm.projection, mixture)

    with one_blas_thread(), ThreadPoolExecutor(usable_cpus()) as threads:
        variants = dict(zip([arm.variant for arm in arms], threads.map(judge, arms), strict=True))
    return SetQuality(
        hybrid=np.array(hybrid),
        variants=variants,
        weighings={
            name: _quality(source, weighed, codes, _reweighed(weighed.projection, weigh), mixture)
            for name, weigh in WEIGHINGS.items()
        },
    )


def summary(judged: Sequence[Quality], compared: Sequence[Quality]) -> Summary:
    """Returns the means over sets of one arm, and its difference to another; both hold one entry a set."""
    return Summary(
        late=float(np.mean([one.late.mean() for one in judged])),
        combined=float(np.mean([one.combined.mean() for one in judged])),
        difference=mean_difference(
            [ours.combined - theirs.combined for ours, theirs in zip(judged, compared, strict=True)]
        ),
    )


def _reweighed(projection: TokenProjection, weigh: Weighing) -> TokenProjection:
    return replace(projection, token_weights=weigh(projection.token_weights))


def _quality(source: LateSet, arm: Arm, codes: TokenCodes, projection: TokenProjection, mixture: Mixture) -> Quality:
    found = np.empty((len(source.questions), 2))
    for place, asked in enumerate(source.questions):
        late = _late_scores(asked, arm, codes, projection)
        combined = mixture.before(asked.candidates.first_stage, late)
        found[place] = pool_ndcg(asked.candidates.pool, np.stack((late, combined)))
    return Quality(found[:, 0], found[:, 1])


def _late_scores(asked: Asked, arm: Arm, codes: TokenCodes, projection: TokenProjection) -> NDArray[np.float64]:
    query = projection.query_vectors(asked.item, asked.states)
    return arm.coder.scores(query, *codes.of(asked.candidates.passages)).astype(np.float64)
