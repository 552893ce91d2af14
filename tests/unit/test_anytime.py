"""Scoring best first and stopping early: what is scored, what it costs, and what happens when it goes wrong."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace

import numpy as np
import pytest

from encoders.errors import NonFiniteOutput
from encoders.scheduler import TokenScheduler
from encoders.types import TokenizedText
from rerank.anytime import AnytimeReranker, Pool, Refined
from rerank.calibrate import Weights
from rerank.cross_encoder import OnnxCrossEncoder, ScheduledCrossEncoder
from rerank.errors import RerankIncomplete
from rerank.progress import Aim
from rerank.stopping import EXCEEDANCES, Line, StopRule
from rerank.types import Load
from retrieval.caching.pair_scores import PairScores
from tests.fakes.engines import EchoEngine, GatedEngine, items
from tests.fakes.rerankers import TOKENS, ScriptedReranker
from tests.fakes.scopes import memory_scores

# Logits lie within 2 of the line from -8 at a score of 0 to 8 at a score of 1.
RULE = StopRule(0.05, (Line(-8.0, 16.0, 0.5, tuple(np.linspace(-2, 2, len(EXCEEDANCES)))),))
AIM = Aim(top_k=5, weights=Weights(0.5, 0.5), rule=RULE)
UNSURE = Aim(5, Weights(0.1, 0.9), StopRule(0.0, (Line(0.0, 0.0, 0.0, tuple(np.linspace(-50, 50, len(EXCEEDANCES)))),)))
NS = 1_000_000


def pool(count: int = 32, *, cached: bool = True) -> Pool:
    """Returns passages named by their place, with base scores from 0.9 down to 0.1."""
    return Pool("acme", "q", [str(place) for place in range(count)], np.linspace(0.9, 0.1, count), cached)


def logit_of(passage: str) -> float:
    """Returns a logit on the rule's line."""
    return -8.0 + 16.0 * float(np.linspace(0.9, 0.1, 32)[int(passage)])


def cache() -> PairScores:
    """Returns an empty cache with room for all."""
    return memory_scores()


async def refine(reranker: ScriptedReranker, asked: Pool, aim: Aim = AIM, deadline_ns: int | None = None) -> Refined:
    """Runs a pool through a reranker with a cache of its own."""
    return await AnytimeReranker(reranker, cache(), reranker.clock).refine(asked, aim, deadline_ns)


def scored(refined: Refined) -> list[int]:
    """Returns the places that have a logit."""
    return np.flatnonzero(~np.isnan(refined.logits)).tolist()


async def test_refine_stops_when_the_top_is_settled() -> None:
    """The rest has no chance any more: the best are scored, best first, and tokens are what was scored."""
    reranker = ScriptedReranker(logit_of)
    found = await refine(reranker, pool())
    assert (found.stop, found.usable) == ("settled", True)
    assert 5 <= found.pair_count < 16
    assert scored(found) == list(range(found.pair_count))
    assert found.token_count == TOKENS * found.pair_count
    assert reranker.scored == sorted(reranker.scored, key=int)


async def test_refine_scores_all_when_nothing_can_be_excluded() -> None:
    """Equal candidates with logits that the line cannot tell apart are all scored."""
    reranker = ScriptedReranker(lambda passage: float(int(passage) % 7))
    flat = Pool("acme", "q", [str(place) for place in range(20)], np.full(20, 0.5))
    found = await refine(reranker, flat, UNSURE)
    assert (found.stop, found.pair_count) == ("all", 20)


async def test_refine_keeps_what_is_scored_when_only_the_rest_comes_too_late() -> None:
    """A piece beyond the result that misses the deadline is lost; the result is made of what was scored before it."""
    late = frozenset(map(str, range(12, 20)))
    reranker = ScriptedReranker(lambda passage: float(int(passage) % 7), late=late)
    flat = Pool("acme", "q", [str(place) for place in range(20)], np.full(20, 0.5))
    found = await refine(reranker, flat, UNSURE, deadline_ns=NS)
    assert (found.stop, found.usable) == ("deadline", True)
    assert scored(found) == list(range(12))


async def test_refine_of_few_scores_them_all() -> None:
    """A pool that is smaller than what is asked for has no early end; an empty one has nothing to score."""
    found = await refine(ScriptedReranker(logit_of), pool(3))
    assert (found.stop, found.pair_count) == ("all", 3)
    nothing = await refine(ScriptedReranker(logit_of), pool(0))
    assert (nothing.stop, nothing.usable, nothing.token_count) == ("all", True, 0)


async def test_refine_plans_a_shallower_pool_for_a_deadline() -> None:
    """Time for about ten of 32 pairs scores at most ten, the best, and never comes too late."""
    reranker = ScriptedReranker(lambda passage: 0.0, load=Load(2, float(NS), 0), true_ns_per_token=float(NS))
    found = await refine(reranker, pool(), UNSURE, 10 * TOKENS * NS // 2)
    assert (found.stop, found.usable) == ("deadline", True)
    assert 5 <= found.pair_count <= 10
    assert scored(found) == list(range(found.pair_count))


async def test_refine_spends_nothing_when_the_result_cannot_be_covered() -> None:
    """Time for four pairs of five asked for: not one is scored."""
    reranker = ScriptedReranker(logit_of, load=Load(2, float(NS), 0), true_ns_per_token=float(NS))
    found = await refine(reranker, pool(), AIM, 4 * TOKENS * NS // 2)
    assert (found.stop, found.usable, found.pair_count) == ("deadline", False, 0)
    assert reranker.pieces == []


async def test_refine_reckons_with_those_who_wait_already() -> None:
    """Time for the result alone is not enough behind a long queue."""
    reranker = ScriptedReranker(logit_of, load=Load(2, float(NS), 40), true_ns_per_token=float(NS))
    found = await refine(reranker, pool(), AIM, 10 * TOKENS * NS // 2)
    assert (found.usable, found.pair_count) == (False, 0)


async def test_refine_gives_up_early_when_it_turns_out_too_slow() -> None:
    """After the first pieces the plan is made anew; what cannot be covered any more is not paid for."""
    reranker = ScriptedReranker(logit_of, load=Load(2, NS / 10, 0), true_ns_per_token=float(NS))
    found = await refine(reranker, pool(), Aim(20, Weights(0.5, 0.5), RULE), 12 * TOKENS * NS // 2)
    assert (found.stop, found.usable) == ("deadline", False)
    assert 2 <= found.pair_count < 12


async def test_refine_that_comes_too_late_scores_nothing() -> None:
    """A deadline that passes during a piece takes the whole list with it, and says what was spent."""
    reranker = ScriptedReranker(logit_of, load=Load(2, 1.0, 0), true_ns_per_token=float(NS))
    with pytest.raises(RerankIncomplete) as late:
        await refine(reranker, pool(), AIM, TOKENS * NS // 2)
    assert (late.value.reason, late.value.scored_pairs, late.value.asked_pairs) == ("deadline", 0, 32)


async def test_refine_with_one_bad_pair_scores_nothing() -> None:
    """RER-10: one failing pair among 32 leaves no scores to mix; those that came out well are remembered."""
    remembered = cache()
    bad = ScriptedReranker(logit_of, bad=frozenset({"3"}))
    with pytest.raises(RerankIncomplete, match="unavailable") as failed:
        await AnytimeReranker(bad, remembered).refine(pool(), AIM, None)
    assert (failed.value.scored_pairs, failed.value.scored_tokens) == (3, 3 * TOKENS)
    again = await AnytimeReranker(ScriptedReranker(logit_of), remembered).refine(pool(), AIM, None)
    assert again.cached_count == 2


async def test_refine_takes_known_logits_for_nothing() -> None:
    """The second time costs no tokens and gives the same; a request that wants no cache pays again."""
    reranker = ScriptedReranker(logit_of)
    anytime = AnytimeReranker(reranker, cache())
    first = await anytime.refine(pool(), AIM, None)
    again = await anytime.refine(pool(), AIM, None)
    assert (again.token_count, again.pair_count, again.cached_count) == (0, 0, first.pair_count)
    assert again.stop == "settled"
    np.testing.assert_array_equal(first.logits, again.logits)
    fresh = await anytime.refine(pool(cached=False), AIM, None)
    assert (fresh.pair_count, fresh.cached_count) == (first.pair_count, 0)


async def test_refine_with_known_logits_far_down_is_not_usable_without_the_best() -> None:
    """Scores of the wrong candidates do not make a result when there is no time for the right ones."""
    remembered, asked = cache(), pool()
    reranker = ScriptedReranker(lambda passage: 0.0, load=Load(2, float(NS), 0), true_ns_per_token=float(NS))
    last = Pool("acme", "q", asked.passages[20:], asked.base[20:])
    aim = replace(UNSURE, top_k=12)
    await AnytimeReranker(reranker, remembered, reranker.clock).refine(last, aim, None)
    deadline_ns = reranker.clock.now_ns + TOKENS * NS
    found = await AnytimeReranker(reranker, remembered, reranker.clock).refine(asked, aim, deadline_ns)
    assert (found.cached_count, found.stop, found.usable) == (12, "deadline", False)


async def test_refine_that_is_cancelled_starts_nothing_more() -> None:
    """A caller who leaves ends the pieces under way."""
    with _scheduled(engine := GatedEngine()) as (scheduler, reranker):
        call = asyncio.create_task(AnytimeReranker(reranker, cache()).refine(pool(), AIM, None))
        await asyncio.to_thread(engine.wait_begun)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        engine.gate.set()
        await asyncio.to_thread(scheduler.stop)
    assert len(engine.seen) <= 1


async def test_refine_against_a_full_queue_scores_nothing() -> None:
    """A refused piece takes the whole list with it."""
    with _scheduled(EchoEngine(), capacity=1) as (_, reranker), pytest.raises(RerankIncomplete, match="unavailable"):
        await AnytimeReranker(_TwoAtOnce(reranker), cache()).refine(pool(), AIM, None)


async def test_refine_with_a_value_that_is_no_number_scores_nothing() -> None:
    """NaN from the session, for one pair of 32."""
    engine = EchoEngine(faults={4: NonFiniteOutput})
    with _scheduled(engine) as (_, reranker), pytest.raises(RerankIncomplete, match="unavailable") as failed:
        await AnytimeReranker(reranker, cache()).refine(pool(), AIM, None)
    causes = [failed.value.__cause__, failed.value.__cause__ and failed.value.__cause__.__cause__]
    assert any(isinstance(cause, NonFiniteOutput) for cause in causes)


async def test_twenty_callers_of_a_busy_engine_all_end_in_time() -> None:
    """Behind an engine that is held, each of 20 callers with 100 ms falls back as a whole, and the queue is empty."""
    with _scheduled(engine := GatedEngine()) as (scheduler, reranker):
        anytime = AnytimeReranker(reranker, cache())
        deadline_ns = time.monotonic_ns() + 100 * NS
        calls = [anytime.refine(pool(), AIM, deadline_ns) for _ in range(20)]
        for found in await asyncio.gather(*calls, return_exceptions=True):
            if isinstance(found, Refined):
                assert not found.usable
            else:
                assert isinstance(found, RerankIncomplete)
                assert (found.reason, found.scored_pairs) == ("deadline", 0)
        assert scheduler.stats().queued_online_items == 0
        engine.gate.set()


class _scheduled:  # noqa: N801 - used like a function
    """A real scheduler with one worker, and a cross-encoder whose pairs are their passage's number."""

    def __init__(self, engine: EchoEngine, capacity: int = 1000) -> None:
        self._scheduler = TokenScheduler(workers=1, capacity_items=capacity)
        encoder = OnnxCrossEncoder(engine, _Numbers(), "r1")  # type: ignore[arg-type]
        self._reranker = ScheduledCrossEncoder(encoder, self._scheduler)

    def __enter__(self) -> tuple[TokenScheduler, ScheduledCrossEncoder]:
        return self._scheduler, self._reranker

    def __exit__(self, *_: object) -> None:
        self._scheduler.stop()


class _Numbers:
    """Makes pairs of passages that are numbers."""

    def pairs(self, query: str, passages: list[str]) -> list[TokenizedText]:
        return items(*map(int, passages))


class _TwoAtOnce(ScheduledCrossEncoder):
    """Sends pieces of two, whatever the scheduler has."""

    def __init__(self, behind: ScheduledCrossEncoder) -> None:
        super().__init__(behind.encoder, behind._scheduler)

    def load(self) -> Load:
        return Load(2, 1.0, 0)
