"""What the caches did and hold, as messages."""

from __future__ import annotations

import math

import pytest

from headrace.v1 import admin_pb2, common_pb2, retrieval_pb2
from indexers.types import Passage
from retrieval.answers.entry import Answer, Cited, Seen, fingerprint
from retrieval.answers.operating import Located, Verdict, answer_key
from retrieval.caching.operating import Chosen
from retrieval.caching.shared import SharedStats
from retrieval.clock import CacheUse, Ledger
from retrieval.errors import InvalidRequest
from retrieval.reuse import EvidenceReport, Reuse, ReuseReport, RiskReport
from retrieval.server.convert.caches import (
    answer_key_from_pb,
    chosen_from_pb,
    explained_to_pb,
    shared_to_pb,
    verdict_from_pb,
)
from retrieval.server.convert.ledgers import ledger_to_pb
from retrieval.server.convert.reuse import reuse_to_pb

KEY = answer_key("acme", "docs", b"\xab" * 32)


def test_reuse_without_gates_leaves_them_absent() -> None:
    """A gate that was not asked is absent, which is not the same as one that saw nothing."""
    message = reuse_to_pb(ReuseReport(reason="unknown"))
    assert message == retrieval_pb2.AnswerReuse(reason="unknown")
    assert not message.HasField("evidence")
    assert not message.HasField("risk")
    assert reuse_to_pb(ReuseReport(evidence=EvidenceReport())).HasField("evidence")


def test_reuse_tells_every_gate() -> None:
    """All of the report is on the wire."""
    evidence, risk = EvidenceReport(2, 1, 3, 4, trusted=True), RiskReport(0.125, 0.25, 0.5, 77)
    report = ReuseReport(Reuse.SIMILAR, "", "ab", "shared", 1234, 0.75, evidence, risk, stored=True, shadowed=True)
    assert reuse_to_pb(report) == retrieval_pb2.AnswerReuse(
        kind=retrieval_pb2.REUSE_KIND_SIMILAR, key="ab", tier=common_pb2.CACHE_TIER_SHARED, age_ms=1234,
        similarity=0.75, stored=True, shadowed=True,
        evidence=retrieval_pb2.EvidenceCheck(cited=2, found=1, weakest_rank=3, newcomers=4, trusted=True),
        risk=retrieval_pb2.RiskCheck(error_estimate=0.125, error_bound=0.25, max_error_rate=0.5, labels=77),
    )  # fmt: skip
    kinds = [reuse_to_pb(ReuseReport(reuse)).kind for reuse in Reuse]
    assert len(set(kinds)) == len(Reuse)


@pytest.mark.parametrize(
    ("tier", "expected"),
    [
        ("", common_pb2.CACHE_TIER_UNSPECIFIED),
        ("memory", common_pb2.CACHE_TIER_MEMORY),
        ("shared", common_pb2.CACHE_TIER_SHARED),
        ("flight", common_pb2.CACHE_TIER_FLIGHT),
    ],
)
def test_cache_use_tells_its_tier(tier: str, expected: int) -> None:
    """Where a value was is on the wire."""
    [use] = ledger_to_pb(Ledger((), 0, caches=(CacheUse("results", bool(tier), tier),))).caches
    assert (use.hit, use.tier) == (bool(tier), expected)


def test_answer_keys_are_checked() -> None:
    """A key is 64 hexadecimal digits, and its tenant is the caller's."""
    assert answer_key_from_pb("acme", "docs", "aB" * 32) == KEY
    for bad in ("", "ab" * 31, "ab" * 33, "gg" * 32, "ab" * 31 + "a\n", "٣" * 64):
        with pytest.raises(InvalidRequest, match="64 hexadecimal digits") as refused:
            answer_key_from_pb("acme", "docs", bad)
        assert refused.value.field == "key"


def test_verdicts_must_be_given() -> None:
    """Without a verdict, or with an unknown one, nothing happens."""
    assert verdict_from_pb(retrieval_pb2.ANSWER_VERDICT_GOOD) is Verdict.GOOD
    assert verdict_from_pb(retrieval_pb2.ANSWER_VERDICT_BAD) is Verdict.BAD
    for bad in (0, 3):
        with pytest.raises(InvalidRequest, match="say which"):
            verdict_from_pb(bad)


def test_choices_take_what_is_set() -> None:
    """What is not set does not narrow; an age of zero is an age."""
    request = admin_pb2.InvalidateCacheRequest
    assert chosen_from_pb("acme", request()) == Chosen("acme")
    assert chosen_from_pb("acme", request(older_than_s=0.0)) == Chosen("acme", older_than_s=0.0)
    whole = request(collection="docs", document_id="d", older_than_s=1.5)
    assert chosen_from_pb("acme", whole) == Chosen("acme", "docs", "d", 1.5)
    for bad in (-0.5, math.nan, math.inf):
        with pytest.raises(InvalidRequest, match="0 or more"):
            chosen_from_pb("acme", request(older_than_s=bad))


def test_explanation_compares_with_what_is_there_now() -> None:
    """A passage is unchanged when what the model read of it is; one that is gone or reworded is not."""
    same, changed = (Passage(name, "d", "", (), f"text {name}", 0, 6, 0, 0, {}, header="H") for name in ("a", "b"))
    seen = (Seen("a", "d", fingerprint(same)), Seen("b", "d", "another"), Seen("c", "e", "gone"))
    answer = Answer(KEY, KEY, "q", "t", (), (Cited(1, ("a", "c")),), seen, "backend", "model", 5.0)
    message = explained_to_pb(Located(answer, "shared", 1.5), [changed, same])
    assert (message.question, message.text, message.backend, message.model) == ("q", "t", "backend", "model")
    assert (message.age_ms, message.tier) == (1500, common_pb2.CACHE_TIER_SHARED)
    told = [(one.chunk_id, one.document_id, one.cited, one.unchanged) for one in message.passages]
    assert told == [("a", "d", True, True), ("b", "d", False, False), ("c", "e", True, False)]


def test_shared_tier_is_absent_when_there_is_none() -> None:
    """No tier is not a tier that does nothing."""
    assert shared_to_pb(SharedStats("none", available=True)) is None
    stats = SharedStats("redis", False, 1, 2, 3, 4, 5, 6)
    assert shared_to_pb(stats) == admin_pb2.SharedTierStats(
        kind="redis", lookups=1, hits=2, damaged=3, writes=4, dropped_writes=5, failures=6
    )
