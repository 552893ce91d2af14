"""The reranking benchmark: pairs kept between runs, the rule that is learned, and the product's decisions replayed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from bench._common.beir import Split
from bench._common.rerank.figures import (
    BUDGETS_MS,
    DEPTHS,
    Speed,
    budgets,
    curve,
    gates,
    overlap_at,
    simulated,
    tokens_saved,
)
from bench._common.rerank.fitting import fit_rule
from bench._common.rerank.pools import RerankPool
from bench._common.rerank.replay import anytime, fixed, judged, overlap, unranked
from bench._common.rerank.store import PairStore, ScoredPair
from rerank.anytime import AnytimeReranker, Pool
from rerank.calibrate import Weights
from rerank.progress import Aim
from tests.fakes.rerankers import TOKENS, ScriptedReranker
from tests.fakes.scopes import memory_scores

WEIGHTS = Weights(0.5, 0.5)
SPEED = Speed(ns_per_token=250_000.0, workers=2)


def pools(count: int, split: Split = Split.TRAIN) -> list[RerankPool]:
    """Returns pools of 50 with one relevant document, near the top, and logits that follow the score with noise."""
    random = np.random.default_rng(count)
    made = []
    for number in range(count):
        base = np.sort(random.uniform(0.0, 0.9, 50))[::-1]
        logits = -6.0 + 8.0 * base + random.normal(0.0, 1.0, 50) + random.normal()
        relevant = min(int(random.exponential(3.0)), 49)
        logits[relevant] += 4.0
        names = tuple(f"{number}-{place}" for place in range(50))
        made.append(RerankPool("s", split, {names[relevant]: 1}, names, base, logits, np.full(50, TOKENS)))
    return made


def test_store_keeps_pairs_between_runs(tmp_path: Path) -> None:
    """A pair is found again by query and passage; a line that was cut short is passed over."""
    store = PairStore(tmp_path, "revision")
    store.put("q", ["a", "b"], [ScoredPair(1.5, 10, 100.0), ScoredPair(-1.5, 20, 200.0)])
    with next(tmp_path.iterdir()).open("a", encoding="utf-8") as file:
        file.write('\n{"key": "cut sh')
    again = PairStore(tmp_path, "revision")
    assert again.get("q", "b") == ScoredPair(-1.5, 20, 200.0)
    assert again.get("qb", "") is None
    again.put("q", ["c"], [ScoredPair(0.0, 1, 1.0)])
    assert PairStore(tmp_path, "revision").get("q", "c") == ScoredPair(0.0, 1, 1.0)
    assert PairStore(tmp_path, "other").get("q", "a") is None


def test_rule_that_is_learned_predicts_the_logits() -> None:
    """Half of the unscored logits come out above the middle margin, and hardly any above the last."""
    rule = fit_rule(pools(60), top_k=10, tolerance=0.05, lines=2)
    above, far, seen = 0, 0, 0
    for pool in pools(61):
        line = rule.line_for(pool.logits[:20])
        left = pool.logits - line.intercept - line.slope * pool.base
        margins = left[20:] - line.carry * left[:20].mean()
        above, far, seen = (
            above + int((margins > line.margins[2]).sum()), far + int((margins > line.margins[-1]).sum()), seen + 30,
        )  # fmt: skip
    assert above / seen == pytest.approx(0.5, abs=0.07)
    assert far / seen < 0.02
    assert all(line.slope > 0.0 for line in rule.lines)


def test_rule_is_not_learned_from_shallow_pools() -> None:
    """Where everything is in the result there is nothing to stop."""
    with pytest.raises(ValueError, match="raise the depth"):
        fit_rule(pools(3), top_k=50, tolerance=0.05)


async def test_replay_decides_as_the_product_does() -> None:
    """The same pairs are scored, and it ends for the same reason."""
    rule = fit_rule(pools(60), top_k=10, tolerance=0.05)
    for pool in pools(12):
        aim = Aim(10, WEIGHTS, rule)
        reranker = ScriptedReranker(lambda text, pool=pool: float(pool.logits[int(text)]))  # type: ignore[misc]
        asked = Pool("t", "q", [str(place) for place in range(50)], pool.base)
        found = await AnytimeReranker(reranker, memory_scores(0)).refine(asked, aim, None)
        replayed = anytime(pool, aim, piece_size=2)
        assert (replayed.stop, replayed.pairs, replayed.tokens) == (found.stop, found.pair_count, found.token_count)


def test_replay_of_a_budget_keeps_to_it() -> None:
    """Anytime scores what fits or nothing; a fixed depth that does not fit leaves the old order."""
    rule = replace(fit_rule(pools(60), top_k=10, tolerance=0.05), tolerance=0.0)
    [pool] = pools(1)
    aim = Aim(10, WEIGHTS, rule)
    within = anytime(pool, aim, 2, budget_tokens=15 * TOKENS)
    assert (within.stop, len(within.order)) == ("deadline", within.pairs)
    assert 10 <= within.pairs <= 15
    assert anytime(pool, aim, 2, budget_tokens=9 * TOKENS).order == unranked(pool).order
    assert fixed(pool, aim, 20, budget_tokens=19 * TOKENS).order == unranked(pool).order
    shallow = fixed(pool, aim, 5)
    assert sorted(shallow.order[:5]) == list(range(5))
    assert shallow.order[5:] == tuple(range(5, 50))


def test_simulated_model_is_the_judgement_with_seeded_noise() -> None:
    """Relevant candidates score high; the same seed gives the same logits."""
    one, again = simulated(pools(5), 7), simulated(pools(5), 7)
    for pool, same in zip(one, again, strict=True):
        np.testing.assert_array_equal(pool.logits, same.logits)
        assert pool.logits[pool.grades > 0].min() > 0.0 > np.median(pool.logits)
        full = fixed(pool, Aim(10, WEIGHTS, fit_rule(one, 10, 0.05)), 50)
        assert judged(pool, full, 10) == 1.0
        assert overlap(full, full, 10) == 1.0


def test_figures_cover_depths_tolerances_and_budgets() -> None:
    """More tolerance never scores more, and each budget is compared with the depth that is best for it."""
    train, test = simulated(pools(60), 1), simulated(pools(20, Split.TEST), 2)
    aim = Aim(10, WEIGHTS, fit_rule(train, 10, 0.05))
    found = curve(test, aim, SPEED)
    assert found.fixed[str(max(DEPTHS))].token_share == found.fixed[str(max(DEPTHS))].overlap == 1.0
    tokens = [point.tokens for point in found.anytime.values()]
    assert tokens == sorted(tokens, reverse=True)
    times, tolerance = tokens_saved(found, 0.99)
    assert times == pytest.approx(1.0 / found.anytime[tolerance].token_share)
    assert overlap_at(found, 1.0) == pytest.approx(max(point.overlap for point in found.anytime.values()))
    compared = budgets(test, aim, SPEED)
    assert set(compared) == {f"{budget:.0f}" for budget in BUDGETS_MS}
    for budget, one in compared.items():
        assert one.anytime.ms <= float(budget)
        assert one.difference.low <= one.difference.mean <= one.difference.high
    skipped = [one.skipped for one in gates(test, aim, SPEED).values()]
    assert skipped == sorted(skipped)
