"""What apps and operators do with answers: verdicts, looking one up, forgetting."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from indexers.types import CollectionKey
from retrieval.answers.entry import Answer, Cited, Seen, decode, encode
from retrieval.answers.guard import read_facts
from retrieval.answers.operating import AnswerOperations, Served, Verdict, answer_key
from retrieval.answers.risk import Judgement
from retrieval.answers.risks import Risks
from retrieval.answers.similarity import FEATURES
from retrieval.answers.store import AnswerStore, Kept
from retrieval.caching.keys import CacheKey
from retrieval.errors import AnswerNotFound
from retrieval.scope import VectorSpace
from retrieval.types import AnswerCitation
from tests.fakes.shared_tier import MemoryTier

KEY = answer_key("acme", "docs", b"k" * 32)
SPACE = VectorSpace(CollectionKey("acme", "docs"), "model@r1")
NOW_S = 1_000.0
JUDGED = Judgement(score=9.0, error_estimate=0.001, error_bound=0.004, labels=900, serve=True, max_error_rate=0.01)
PARTITION = CacheKey(KEY.purpose, "acme", "docs", b"p" * 32)


def _answer(key: CacheKey = KEY, stored_at_s: float = NOW_S - 60.0) -> Answer:
    return Answer(
        key=key,
        partition=PARTITION,
        question="How tight is valve 7?",
        text="40 newton metres [1]",
        marks=(AnswerCitation(1, 17, 20, "valve"),),
        cited=(Cited(1, ("c1",)),),
        seen=(Seen("c1", "valve", "f1"), Seen("c2", "pump", "f2")),
        backend="extractive",
        model="m",
        stored_at_s=stored_at_s,
    )


class _Rig:
    """A store with one answer, the risks beside it, and a shared tier."""

    def __init__(self) -> None:
        self.tier = MemoryTier(lambda: NOW_S)
        self.risks = Risks()
        self.store = AnswerStore(1_000_000, self.risks.forget)
        self.operations = AnswerOperations(self.store, self.risks, self.tier, lambda: NOW_S)

    def here(self, answer: Answer) -> None:
        self.store.put(Kept(answer, read_facts(answer.question), None, None, 0))

    def there(self, answer: Answer) -> None:
        self.tier.put(answer.key, encode(answer), 60.0)

    def served(self, request_id: str = "r1") -> None:
        self.operations.note_served(request_id, Served(KEY, SPACE, np.zeros(len(FEATURES)), JUDGED))

    def errors(self) -> int:
        return self.risks.of(SPACE).figures.served_errors


@pytest.fixture
def rig() -> _Rig:
    """Stores without an answer."""
    return _Rig()


async def test_bad_answer_is_gone_here_and_in_the_shared_tier(rig: _Rig) -> None:
    """A bad verdict takes the answer away from both tiers; without the request nothing is learned."""
    rig.here(_answer())
    rig.there(_answer())
    reported = await rig.operations.report(KEY, Verdict.BAD)
    assert (reported.removed, reported.learned) == (True, False)
    assert rig.store.peek(KEY) is None
    assert not rig.tier.values
    with pytest.raises(AnswerNotFound):
        await rig.operations.find(KEY)


async def test_bad_answer_that_only_others_hold_is_removed(rig: _Rig) -> None:
    """An answer of another process is found in the shared tier."""
    rig.there(_answer())
    assert (await rig.operations.report(KEY, Verdict.BAD)).removed
    assert not rig.tier.values


async def test_bad_answer_is_not_taken_back(rig: _Rig) -> None:
    """What the shared tier could not delete is refused here, unless it was made after the verdict."""
    rig.here(_answer())
    rig.there(_answer())
    rig.tier.available = False
    await rig.operations.report(KEY, Verdict.BAD)
    rig.tier.available = True
    assert rig.operations.refuses(_answer())
    assert not rig.operations.refuses(_answer(stored_at_s=NOW_S + 1.0))
    with pytest.raises(AnswerNotFound):
        await rig.operations.find(KEY)


async def test_verdict_on_what_a_similar_question_got_teaches(rig: _Rig) -> None:
    """With the request that it served, a bad verdict is an error that the risk control knows, once."""
    rig.here(_answer())
    rig.served()
    reported = await rig.operations.report(KEY, Verdict.BAD, "r1")
    assert (reported.removed, reported.learned, rig.errors()) == (True, True, 1)
    with pytest.raises(AnswerNotFound):
        await rig.operations.report(KEY, Verdict.BAD, "r1")
    assert rig.errors() == 1


async def test_verdict_teaches_after_the_answer_has_left(rig: _Rig) -> None:
    """The judgement is remembered by itself, so a late complaint about an evicted answer still counts."""
    rig.served()
    reported = await rig.operations.report(KEY, Verdict.BAD, "r1")
    assert (reported.removed, reported.learned, rig.errors()) == (False, True, 1)


async def test_verdict_of_another_request_or_answer_teaches_nothing(rig: _Rig) -> None:
    """The request must be one that this answer served, and of the same tenant."""
    other = answer_key("acme", "docs", b"o" * 32)
    rig.here(_answer())
    rig.here(_answer(other))
    rig.served()
    assert not (await rig.operations.report(other, Verdict.BAD, "r1")).learned
    assert not (await rig.operations.report(KEY, Verdict.BAD, "r2")).learned
    with pytest.raises(AnswerNotFound):
        await rig.operations.report(answer_key("evil", "docs", KEY.digest), Verdict.BAD, "r1")
    assert rig.errors() == 0


async def test_good_verdict_changes_nothing(rig: _Rig) -> None:
    """Praise removes nothing and loosens nothing; the request may still be complained about."""
    rig.here(_answer())
    rig.served()
    reported = await rig.operations.report(KEY, Verdict.GOOD, "r1")
    assert (reported.removed, reported.learned) == (False, False)
    assert rig.store.peek(KEY) is not None
    assert (await rig.operations.report(KEY, Verdict.BAD, "r1")).learned


@pytest.mark.parametrize("verdict", Verdict)
async def test_verdict_on_an_unknown_answer_is_refused(rig: _Rig, verdict: Verdict) -> None:
    """Another tenant's answer is as unknown as one that never was."""
    rig.here(_answer())
    rig.there(_answer())
    for key in (answer_key("evil", "docs", KEY.digest), answer_key("acme", "other", KEY.digest)):
        with pytest.raises(AnswerNotFound):
            await rig.operations.report(key, verdict)
    assert rig.store.peek(KEY) is not None
    assert rig.tier.values


async def test_answer_is_found_where_it_is(rig: _Rig) -> None:
    """The own process is asked first, and the age counts from when the answer was made."""
    rig.there(_answer())
    there = await rig.operations.find(KEY)
    rig.here(_answer())
    here = await rig.operations.find(KEY)
    assert (there.tier, here.tier) == ("shared", "memory")
    assert there.answer == here.answer == _answer()
    assert here.age_s == 60.0


def test_serves_are_remembered_within_a_bound(rig: _Rig) -> None:
    """The oldest serves are forgotten first; all of them are counted."""
    for number in range(10_050):
        rig.served(f"r{number}")
    assert len(rig.operations._serves) == 10_000
    [(collection, learned)] = rig.operations.learned("acme")
    assert (collection, learned.served) == ("docs", 10_050)
    assert list(rig.operations.learned("evil")) == []


def test_labels_are_counted_by_collection() -> None:
    """What comparisons found is known by collection and in all, and the collection unused for longest gives way."""
    risks = Risks(most=2)
    a, b, c = (VectorSpace(CollectionKey("acme", name), "model@r1") for name in "abc")
    risks.count_label(a, served=True, agree=True)
    risks.count_label(a, served=False, agree=False)
    risks.count_label(b, served=False, agree=True)
    assert {name: (one.labels, one.errors) for name, one in risks.of_tenant("acme")} == {"a": (2, 1), "b": (1, 0)}
    risks.count_label(c, served=False, agree=True)
    assert [name for name, _ in risks.of_tenant("acme")] == ["b", "c"]
    assert dict(risks.comparisons) == {(True, True): 1, (False, False): 1, (False, True): 2}


def test_what_was_learned_is_of_one_model() -> None:
    """A collection that moves to another model begins anew, and shows what is learned now; both forget an answer."""
    risks = Risks()
    moved = replace(SPACE, model="model@r2")
    risks.count_label(SPACE, served=True, agree=False)
    risks.count_label(moved, served=True, agree=True)
    assert risks.of(moved) is not risks.of(SPACE)
    risks.of(moved)
    assert [(name, one.errors) for name, one in risks.of_tenant("acme")] == [("docs", 0)]
    judgement = risks.of(SPACE).judge(KEY.digest, np.ones(len(FEATURES)), 0.01)
    risks.complain(SPACE, KEY, judgement, np.ones(len(FEATURES)))
    assert [risks.of(one).figures.served_errors for one in (SPACE, moved)] == [1, 0]
    risks.forget(KEY)


def test_answer_is_read_for_whoever_only_shows_it() -> None:
    """Without a partition any is taken, with one only that; damage is no answer either way."""
    stored = encode(_answer())
    assert decode(stored, KEY) == decode(stored, KEY, PARTITION) == _answer()
    assert decode(stored, KEY, KEY) is None
    for damaged in (stored[:-1], b"[" * 100_000, stored.replace(b'"stored_at_s":940.0', b'"stored_at_s":"x"')):
        assert decode(damaged, KEY) is None
    assert decode(stored.replace(b"[[1,", b"[[1e999,"), KEY) is None
