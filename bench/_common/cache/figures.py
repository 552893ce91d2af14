"""What the arms of the replay come to: hits by kind, false and stale ones, intervals, times, memory, labels."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bench._common.cache.arms import Arm
from bench._common.cache.fixed import Cosines, FixedServed, scan_ns, verdicts_of
from bench._common.cache.verdicts import Requests
from bench._common.statistics import Quantiles, quantiles
from bench._common.traces.judging import Verdict
from retrieval.reuse import Reuse

PROMPT_TOKENS_PER_S = 123.0  # SmolLM2-135M, Q4_1, llama.cpp on one thread of an idle two-core machine
OUTPUT_TOKENS_PER_S = 53.0
_Z = 1.959964  # 95 %


@dataclass(frozen=True, slots=True)
class Share:
    """A share with its 95 % interval."""

    count: int
    of: int
    low: float
    high: float

    @property
    def value(self) -> float:
        """The share; 0 of nothing."""
        return self.count / self.of if self.of else 0.0

    @classmethod
    def measured(cls, count: int, of: int) -> Share:
        """Returns a share with the score interval (Wilson, 1927): it stays within [0, 1] and is wide without counts."""
        if of == 0:
            return cls(0, 0, 0.0, 1.0)
        share, square = count / of, _Z * _Z
        middle = (share + square / (2 * of)) / (1 + square / of)
        half = _Z / (1 + square / of) * math.sqrt(share * (1 - share) / of + square / (4 * of * of))
        return cls(count, of, max(0.0, middle - half), min(1.0, middle + half))


@dataclass(frozen=True, slots=True)
class HitCounts:
    """The hits of an arm, counted."""

    requests: int
    equal: int  # hits
    similar: int
    hit_rate: float
    false_hits: Share  # of all hits, the answers of other questions
    false_similar: Share  # of the hits in other words alone
    stale: int
    precision: float  # the share of the hits that were right: neither another question's answer nor an old one

    @classmethod
    def counted(cls, verdicts: Sequence[Verdict | None], similar: Sequence[bool]) -> HitCounts:
        """Counts the hits of all requests; None is a miss, and `similar` says which hits were in other words."""
        hits = [one for one in verdicts if one is not None]
        others = [one for one, is_similar in zip(verdicts, similar, strict=True) if one is not None and is_similar]
        return cls(
            requests=len(verdicts),
            equal=len(hits) - len(others),
            similar=len(others),
            hit_rate=len(hits) / max(1, len(verdicts)),
            false_hits=_false(hits),
            false_similar=_false(others),
            stale=sum(one is Verdict.STALE for one in hits),
            precision=sum(one is Verdict.RIGHT for one in hits) / len(hits) if hits else 1.0,
        )


@dataclass(frozen=True, slots=True)
class Learning:
    """What the risk control was taught, and what it takes until a question in other words is served."""

    labels: int
    errors: int
    labels_before_first: int | None  # None when none was ever served
    requests_before_first: int | None


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """One arm over all passes."""

    name: str
    counted: HitCounts
    hits: Quantiles  # own time: without the model's, and without encoding the question
    misses: Quantiles
    model_calls: int
    calls_saved: float  # share of the requests
    model_s: float  # what the model would have taken in all, at the documented speed
    memory_bytes: Mapping[str, int]
    reasons: Mapping[str, int]  # of misses
    learning: Learning | None
    ended: Share | None  # of the answers that the evidence ended, those that were right still


@dataclass(frozen=True, slots=True)
class Baseline:
    """The cache with one threshold: what it served, and what is known of the rest of its work."""

    threshold: float
    served: Sequence[FixedServed]
    none: Arm  # without a cache, on the same requests
    cosines: Cosines


def figures_of(arm: Arm, requests: Requests) -> ArmFigures:
    """Returns the figures of one of our arms."""
    answered, learned, oracle = arm.answered, arm.learned, arm.oracle
    verdicts = [
        None if one.made_for is None else requests.verdict(place, one.made_for) for place, one in enumerate(answered)
    ]
    return ArmFigures(
        name=arm.name,
        counted=HitCounts.counted(verdicts, [one.reuse is Reuse.SIMILAR for one in answered]),
        hits=quantiles([one.own_ns for one in answered if one.made_for is not None]),
        misses=quantiles([one.own_ns for one in answered if one.made_for is None]),
        model_calls=oracle.calls,
        calls_saved=1 - oracle.calls / max(1, len(answered)),
        model_s=_model_s(arm),
        memory_bytes={name: one.used_bytes for name, one in arm.memory.items()},
        reasons=dict(arm.reasons.most_common()),
        learning=_learning(arm) if learned.labels or learned.served else None,
        ended=_right([requests.verdict(*one) for one in arm.ended]),
    )


def fixed_figures(requests: Requests, baseline: Baseline, *, retrieves: bool) -> ArmFigures:
    """Returns the figures of the baseline: what it does besides its look-up is taken from the arm without a cache.

    With `retrieves`, retrieval runs before the look-up, as it does before ours; the hits are the same.
    """
    served, cosines, none = baseline.served, baseline.cosines, baseline.none
    entries = sum(one.made_for is None for one in served)
    scan = quantiles(scan_ns(cosines, entries))
    own = [one.own_ns + int(scan.p50_ms * 1e6) for one in none.answered]
    return ArmFigures(
        name=f"fixed {baseline.threshold:g}, {'after' if retrieves else 'before'} retrieval",
        counted=HitCounts.counted(verdicts_of(requests, served), [not one.equal for one in served]),
        hits=quantiles([own[place] for place, one in enumerate(served) if one.made_for is not None])
        if retrieves
        else scan,
        misses=quantiles([own[place] for place, one in enumerate(served) if one.made_for is None]),
        model_calls=entries,
        calls_saved=1 - entries / max(1, len(served)),
        model_s=entries * _model_s(none) / max(1, none.oracle.calls),
        memory_bytes={"vectors": entries * cosines.vectors.shape[1] * 4},
        reasons={"below the threshold": entries},
        learning=None,
        ended=None,
    )


def _model_s(arm: Arm) -> float:
    oracle = arm.oracle
    return oracle.prompt_tokens / PROMPT_TOKENS_PER_S + oracle.output_tokens / OUTPUT_TOKENS_PER_S


def _right(verdicts: Sequence[Verdict]) -> Share | None:
    return Share.measured(sum(one is Verdict.RIGHT for one in verdicts), len(verdicts)) if verdicts else None


def _false(verdicts: Sequence[Verdict | None]) -> Share:
    return Share.measured(sum(one is Verdict.WRONG for one in verdicts), len(verdicts))


def _learning(arm: Arm) -> Learning:
    learned, first = arm.learned, arm.labels_before_first
    return Learning(learned.labels, learned.errors, first, None if first is None else arm.asked_before_first)
