"""What anytime reranking is worth on pools: against fixed depths, at budgets of time, and with a strong model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from bench._common.metrics import NDCG_CUT
from bench._common.rerank.pools import RerankPool
from bench._common.rerank.replay import Replayed, anytime, fixed, judged, overlap, unranked
from bench._common.statistics import Difference, paired_difference
from rerank.progress import Aim
from rerank.stopping import is_certain

TOP_K = 10
DEPTHS = (5, 10, 20, 30, 50)
TOLERANCES = (0.0, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.5, 1.0)
BUDGETS_MS = (100.0, 250.0, 500.0, 1000.0)
GATE_MARGINS = (0.4, 0.3, 0.2, 0.15, 0.1, 0.05)

# Logits of a strong cross-encoder, made from the judgements: far apart in the mean, with noise that lets a few cross.
_GOOD_LOGIT, _POOR_LOGIT, _NOISE = 4.0, -4.0, 1.5

Policy = Callable[[RerankPool], Replayed]


@dataclass(frozen=True, slots=True)
class Point:
    """A policy over all pools."""

    ndcg: float
    tokens: float  # of a question, in the mean
    token_share: float  # of the full depth's tokens
    pairs: float
    ms: float  # of a question, in the mean, at the measured cost of a token on the workers
    overlap: float  # with the first ten of the full depth's order
    settled: float  # share of the questions that ended by the rule


@dataclass(frozen=True, slots=True)
class Curve:
    """Anytime by tolerance against fixed depths, on one collection of pools."""

    questions: int
    before: float  # nDCG of the order before
    fixed: dict[str, Point]  # by depth
    anytime: dict[str, Point]  # by tolerance


@dataclass(frozen=True, slots=True)
class Gated:
    """What a confidence gate leaves out, and what that costs."""

    skipped: float  # share of the questions
    token_share: float  # of the tokens without a gate
    difference: Difference  # nDCG with the gate minus without


@dataclass(frozen=True, slots=True)
class Budget:
    """Anytime at a budget of time against the fixed depth that is best for it."""

    anytime: Point
    best_depth: int  # 0 for the order before
    best_fixed: Point
    difference: Difference  # nDCG of anytime minus that of the best fixed depth

    @property
    def not_worse(self) -> bool:
        """Whether the interval does not lie wholly below zero."""
        return self.difference.high >= 0.0


@dataclass(frozen=True, slots=True)
class Speed:
    """What a token costs a question, and how many pairs are scored at once."""

    ns_per_token: float  # of one worker
    workers: int

    def ms(self, tokens: float) -> float:
        """Returns the wall time of that many tokens on all workers."""
        return tokens * self.ns_per_token / self.workers / 1e6

    def tokens(self, budget_ms: float) -> float:
        """Returns the tokens that fit."""
        return budget_ms * 1e6 * self.workers / self.ns_per_token


def curve(pools: Sequence[RerankPool], aim: Aim, speed: Speed) -> Curve:
    """Sweeps depths and tolerances."""
    full = [fixed(pool, aim, max(DEPTHS)) for pool in pools]

    def swept(policy: Policy) -> Point:
        return _point(pools, [policy(pool) for pool in pools], full, speed)

    return Curve(
        questions=len(pools),
        before=float(np.mean([judged(pool, unranked(pool), NDCG_CUT) for pool in pools])),
        fixed={str(depth): swept(lambda pool, depth=depth: fixed(pool, aim, depth)) for depth in DEPTHS},  # type: ignore[misc]
        anytime={
            str(tolerance): swept(_anytime(replace(aim, rule=replace(aim.rule, tolerance=tolerance)), speed))
            for tolerance in TOLERANCES
        },
    )


def budgets(pools: Sequence[RerankPool], aim: Aim, speed: Speed) -> dict[str, Budget]:
    """Gives every policy the same time a question; a fixed depth that does not fit into it keeps the order before."""
    full = [fixed(pool, aim, max(DEPTHS)) for pool in pools]
    found: dict[str, Budget] = {}
    for budget_ms in BUDGETS_MS:
        tokens = speed.tokens(budget_ms)
        ours = [anytime(pool, aim, speed.workers, tokens) for pool in pools]
        arms = {depth: [fixed(pool, aim, depth, tokens) for pool in pools] for depth in DEPTHS if depth >= aim.top_k}
        arms[0] = [unranked(pool) for pool in pools]
        best = max(arms, key=lambda depth: _mean_ndcg(pools, arms[depth]))
        ndcgs = [
            [judged(pool, one, NDCG_CUT) for pool, one in zip(pools, runs, strict=True)] for runs in (ours, arms[best])
        ]
        found[f"{budget_ms:.0f}"] = Budget(
            anytime=_point(pools, ours, full, speed),
            best_depth=best,
            best_fixed=_point(pools, arms[best], full, speed),
            difference=paired_difference(ndcgs[0], ndcgs[1]),
        )
    return found


def gates(pools: Sequence[RerankPool], aim: Aim, speed: Speed) -> dict[str, Gated]:
    """Sweeps the margin by which the best candidate must lead for no pair to be scored."""
    open_runs = [anytime(pool, aim, speed.workers) for pool in pools]
    open_ndcg = [judged(pool, run, NDCG_CUT) for pool, run in zip(pools, open_runs, strict=True)]
    found: dict[str, Gated] = {}
    for margin in GATE_MARGINS:
        certain = [is_certain(pool.base, margin) for pool in pools]
        runs = [unranked(pool) if gate else run for pool, gate, run in zip(pools, certain, open_runs, strict=True)]
        found[str(margin)] = Gated(
            skipped=float(np.mean(certain)),
            token_share=sum(run.tokens for run in runs) / max(1, sum(run.tokens for run in open_runs)),
            difference=paired_difference(
                [judged(pool, run, NDCG_CUT) for pool, run in zip(pools, runs, strict=True)], open_ndcg
            ),
        )
    return found


def simulated(pools: Sequence[RerankPool], seed: int) -> list[RerankPool]:
    """Returns the pools with the logits of a strong cross-encoder: the judgements and noise with this seed."""
    random = np.random.default_rng(seed)
    return [
        replace(
            pool,
            logits=np.where(pool.grades > 0, _GOOD_LOGIT, _POOR_LOGIT) + random.normal(0.0, _NOISE, len(pool.base)),
        )
        for pool in pools
    ]


def tokens_saved(curve: Curve, share: float) -> tuple[float, str]:
    """Returns how many times fewer tokens reach this share of the full nDCG, and the tolerance that does."""
    wanted = share * curve.fixed[str(max(DEPTHS))].ndcg
    good = {name: point for name, point in curve.anytime.items() if point.ndcg >= wanted}
    if not good:
        return 1.0, ""
    best = min(good, key=lambda name: good[name].tokens)
    return 1.0 / good[best].token_share, best


def overlap_at(curve: Curve, token_share: float) -> float:
    """Returns the overlap at this share of the tokens, between the two nearest tolerances."""
    points = sorted((point.token_share, point.overlap) for point in curve.anytime.values())
    return float(np.interp(token_share, [share for share, _ in points], [overlap for _, overlap in points]))


def _anytime(aim: Aim, speed: Speed) -> Policy:
    return lambda pool: anytime(pool, aim, speed.workers)


def _mean_ndcg(pools: Sequence[RerankPool], runs: Sequence[Replayed]) -> float:
    return float(np.mean([judged(pool, run, NDCG_CUT) for pool, run in zip(pools, runs, strict=True)]))


def _point(pools: Sequence[RerankPool], runs: Sequence[Replayed], full: Sequence[Replayed], speed: Speed) -> Point:
    tokens = float(np.mean([run.tokens for run in runs]))
    return Point(
        ndcg=_mean_ndcg(pools, runs),
        tokens=tokens,
        token_share=tokens / max(1.0, float(np.mean([run.tokens for run in full]))),
        pairs=float(np.mean([run.pairs for run in runs])),
        ms=speed.ms(tokens),
        overlap=float(np.mean([overlap(run, whole, TOP_K) for run, whole in zip(runs, full, strict=True)])),
        settled=float(np.mean([run.stop == "settled" for run in runs])),
    )
