"""How long an answer lives, and that the gates and the store agree on it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pytest

from encoders.types import EncodedQuery
from indexers.types import Passage
from retrieval.answers.asking import Asked
from retrieval.answers.cache import AnswerCache, Made
from retrieval.answers.gates import Tools
from retrieval.answers.question import normalise
from retrieval.answers.risks import Risks
from retrieval.answers.store import AnswerStore
from retrieval.citations import CitationParser
from retrieval.dispatch.answering import Ended
from retrieval.reuse import Reuse
from retrieval.route import GenerationReport
from retrieval.scope import within
from retrieval.settings.caching import AnswerCacheSettings
from retrieval.speech import BackendEnd, FinishReason, Usage
from retrieval.types import CacheControl, Citation, Context, Found, Hit, ScoreParts
from tests.fakes.scopes import scope

PASSAGE = Passage("c1", "d1", "Valve", (), "Valve 7 is tightened to 40 Nm.", 0, 30, 0, 0, {})
VECTOR = np.eye(1, 8, dtype=np.float32)[0]
FOUND = Found(
    hits=(Hit(PASSAGE, 0.9, ScoreParts()),),
    context=Context("[1] Valve", 5, 100, "words", (Citation(1, PASSAGE, ("c1",)),)),
    epoch=scope().epoch,
    dense=EncodedQuery(VECTOR, None),
)


@dataclass
class World:
    """A clock that a test sets."""

    now_s: float = 1_000_000.0
    settings: AnswerCacheSettings = field(default_factory=AnswerCacheSettings)

    def cache(self) -> AnswerCache:
        """Returns a cache that lives in this world."""
        tools = Tools(now_ns=lambda: int(self.now_s * 1e9), now_s=lambda: self.now_s, draw=lambda: 0.5)
        risks = Risks()
        return AnswerCache(AnswerStore(1_000_000, risks.forget), risks, lambda: self.settings, None, tools)


def asked(question: str, control: CacheControl | None = None) -> Asked:
    """Returns a question of the tenant `acme`."""
    own = scope()
    partition = own.partition("shape")
    key = within(partition, normalise(question))
    return Asked(question, own, partition, key, own.result_key(question, "shape"), 0, control or CacheControl())


def made(text: str = "It is 40 Nm [1].", finish: FinishReason = FinishReason.STOP) -> Made:
    """Returns a new answer with its marks read."""
    parser = CitationParser(FOUND.context.citations)
    end = BackendEnd(finish, Usage(), "m")
    return Made(Ended(end, GenerationReport("b"), False, parser.feed(text), parser).verified, end, "b")


def test_answer_ends_with_its_time_to_live_however_often_it_serves() -> None:
    """A popular answer is made anew after its time, give or take a tenth (case SEM-07)."""
    world = World(settings=AnswerCacheSettings(ttl_s=2.0))
    cache, question = world.cache(), asked("How tight is valve 7?")
    fresh_at: list[float] = []
    for tick in range(50):
        world.now_s = 1_000_000.0 + tick / 10
        kept = cache.recall(question)
        if kept is None or cache.gates.match(question, FOUND, kept).replay is None:
            assert cache.keep(question, FOUND, made())
            fresh_at.append(tick / 10)
    assert len(fresh_at) == 3
    assert all(1.8 <= later - sooner <= 2.3 for sooner, later in pairwise(fresh_at))


@pytest.mark.parametrize(("age_s", "serves"), [(0.0, True), (59.0, True), (61.0, False)])
def test_answer_older_than_the_caller_takes_does_not_serve(age_s: float, serves: bool) -> None:
    """`max_age_s` bounds what is served to one caller, and drops nothing."""
    world = World()
    cache = world.cache()
    cache.keep(asked("why"), FOUND, made())
    world.now_s += age_s
    assert (cache.recall(asked("why", CacheControl(max_age_s=60.0))) is not None) is serves
    assert cache.recall(asked("why")) is not None


def test_answer_is_not_kept_when_it_may_not_serve_again() -> None:
    """Cut, uncited, flagged, degraded, truncated, or not to be stored: nothing is kept."""
    cache = World().cache()
    assert not cache.keep(asked("why"), FOUND, made(finish=FinishReason.LENGTH))
    assert not cache.keep(asked("why"), FOUND, made("It is 40 Nm."))
    assert not cache.keep(asked("why"), FOUND, made("It is 40 Nm [1] [7]."))
    assert not cache.keep(asked("why"), replace(FOUND, degraded=("rerank_deadline",)), made())
    assert not cache.keep(asked("why"), replace(FOUND, query_truncated=True), made())
    assert not cache.keep(asked("why", CacheControl(no_store=True)), FOUND, made())
    assert cache.recall(asked("why")) is None


def test_match_on_a_degraded_result_serves_nothing() -> None:
    """A search that a step down has shaped cannot vouch that nothing better is there."""
    cache = World().cache()
    cache.keep(asked("why"), FOUND, made())
    match = cache.gates.match(asked("why"), replace(FOUND, degraded=("rerank_deadline",)), cache.recall(asked("why")))
    assert (match.report.reuse, match.report.reason) == (Reuse.NONE, "degraded")


def test_question_too_long_to_read_serves_equal_ones_alone() -> None:
    """Its facts are not read, so nothing similar is compared with it; the same question is."""
    cache = World().cache()
    long = "valve " * 300
    cache.keep(asked(long), FOUND, made())
    kept = cache.recall(asked(long))
    assert kept is not None
    assert kept.facts is None
    assert cache.gates.match(asked(long), FOUND, kept).report.reuse is Reuse.EQUAL
    assert cache.gates.match(asked("valve 7"), FOUND, None).report.reason == "unknown"
