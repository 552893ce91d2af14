"""The answer cache: whether an answer that was made before serves a question, and what is learned from each answer.

Reuse is decided after retrieval, by four gates: the partition (everything but the collection's state agrees exactly),
the question (equal after normalisation, or similar and past the guard), the evidence (retrieval of now still finds what
the answer was made from) and the risk (for similar questions: evidence that the error rate stays within its bound).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from encoders.types import EncodedQuery
from retrieval.answers.agreement import answers_agree
from retrieval.answers.asking import Asked
from retrieval.answers.entry import Answer, Cited, Seen, decode, encode, fingerprint
from retrieval.answers.evidence import check_evidence
from retrieval.answers.guard import Facts, compare, read_facts
from retrieval.answers.operating import AnswerOperations, Served
from retrieval.answers.replay import Replay, renumbered
from retrieval.answers.risk import Judgement
from retrieval.answers.risks import Risks
from retrieval.answers.similarity import features_of
from retrieval.answers.store import AnswerStore, Kept, Near
from retrieval.caching.keys import CacheKey
from retrieval.caching.shared import SharedTier, Stored
from retrieval.generation.answering import Verified
from retrieval.settings.caching import AnswerCacheSettings
from retrieval.types import (
    BackendEnd,
    CacheControl,
    EvidenceReport,
    FinishReason,
    Found,
    Reuse,
    ReuseReport,
    RiskReport,
)

_MOST_NEIGHBOURS = 8


@dataclass(frozen=True, slots=True)
class Tools:
    """What the cache asks the world."""

    now_ns: Callable[[], int] = time.monotonic_ns
    now_s: Callable[[], float] = time.time
    draw: Callable[[], float] = random.random


@dataclass(frozen=True, slots=True)
class Made:
    """A new answer: whole, with its citations checked."""

    verified: Verified
    end: BackendEnd
    backend: str

    @property
    def whole(self) -> bool:
        """Whether it ended normally."""
        return self.end.finish_reason is FinishReason.STOP and bool(self.verified.text.strip())


@dataclass(frozen=True, slots=True)
class Pending:
    """An answer that was judged for a similar question; the next answer to that question is compared with it."""

    kept: Kept
    features: NDArray[np.float64]
    judgement: Judgement


@dataclass(frozen=True, slots=True)
class Match:
    """What the gates decided: with `replay`, an answer serves."""

    report: ReuseReport
    replay: Replay | None = None
    kept: Kept | None = None  # the answer that serves
    pending: Pending | None = None  # the similar one that was judged, whether it serves or not


class AnswerCache:
    """Decides, keeps and learns. `settings` gives those in force."""

    def __init__(
        self,
        store: AnswerStore,
        risks: Risks,
        settings: Callable[[], AnswerCacheSettings],
        tier: SharedTier | None = None,
        tools: Tools = Tools(),
    ) -> None:
        self._store = store
        self._risks = risks
        self._settings = settings
        self._tier = tier
        self._tools = tools
        self.operations = AnswerOperations(store, risks, tier, tools.now_s)

    @property
    def shared(self) -> bool:
        """Whether an answer that is not in this process may be in the shared tier."""
        return self._tier is not None

    @property
    def enabled(self) -> bool:
        """Whether answers are kept and used again."""
        return self._settings().enabled

    def recall(self, asked: Asked) -> Kept | None:
        """Returns the answer to exactly this question, if it is in this process, young enough and may serve."""
        if asked.control.no_cache:
            return None
        kept = self._store.get(asked.key)
        return kept if kept is not None and self._fresh(kept.answer, asked.control) else None

    def take(self, asked: Asked, stored: Stored | None, encoded: EncodedQuery | None) -> Kept | None:
        """Keeps in this process what the shared tier gave; None for a miss, a damaged answer or one that is too old."""
        answer = None if stored is None else decode(stored.value, asked.key, asked.partition)
        if answer is None or self.operations.refuses(answer) or not self._fresh(answer, asked.control):
            return None
        kept = Kept(answer, read_facts(answer.question), encoded, None, 0, tier="shared")
        self._store.put(kept)
        return kept

    def trusted(self, kept: Kept) -> bool:
        """Tells whether the answer's evidence was checked so short a time ago that it need not be checked now."""
        trust_ns = self._settings().trust_ms * 1_000_000
        return trust_ns > 0 and self._tools.now_ns() - kept.checked_at_ns < trust_ns

    def trust(self, kept: Kept, found: Found) -> Match | None:
        """Serves an answer on the retrieval that it was checked with last; None when that cannot be."""
        replay = renumbered(kept.answer, found.context)
        if replay is None:
            return None
        return Match(self._served(Reuse.EQUAL, kept, 1.0, EvidenceReport(trusted=True)), replay, kept)

    def match(self, asked: Asked | None, found: Found, equal: Kept | None) -> Match:
        """Sends the answers that come into question through the gates, with what retrieval found now."""
        if asked is None:
            return Match(ReuseReport(reason="off"))
        if asked.control.no_cache:
            return Match(ReuseReport(reason="no_cache"))
        if found.query_truncated or found.degraded:
            return Match(ReuseReport(reason="truncated" if found.query_truncated else "degraded"))
        reason = "unknown"
        if equal is not None:
            match = self._by_evidence(asked, found, equal)
            if match.replay is not None:
                return match
            reason = match.report.reason
            self._store.remove(asked.key)
        settings = self._settings()
        if not settings.similar or settings.max_error_rate == 0.0 or found.dense is None:
            return Match(ReuseReport(reason=reason))
        similar = self._similar(asked, found)
        return similar or Match(ReuseReport(reason=reason))

    def keep(self, asked: Asked, found: Found, made: Made, result_key: CacheKey | None) -> bool:
        """Keeps a new answer if it may serve again: whole, ended normally, unflagged, citing what was found."""
        if asked.control.no_store or not self._settings().enabled or not _worth_keeping(found, made):
            return False
        answer = answer_of(asked, found, made, self._tools.now_s())
        if self._tier is not None:
            self._tier.put(answer.key, encode(answer), self._settings().ttl_s)
        kept = Kept(answer, read_facts(answer.question), found.dense, result_key, self._tools.now_ns())
        return self._store.put(kept)

    def learn(self, asked: Asked, pending: Pending, fresh: str, *, shadowed: bool = False) -> bool:
        """Compares a new answer with the one that was judged for its question; returns whether they agree."""
        agree = answers_agree(fresh, pending.kept.answer.text)
        risk = self._risks.of(asked.scope.key)
        sampled_share = self._settings().shadow_share if shadowed else 1.0
        risk.learn(pending.kept.answer.key.digest, pending.judgement, pending.features, agree, sampled_share)
        self._risks.count_label(asked.scope.key, served=shadowed, agree=agree)
        return agree

    def served(self, request_id: str, match: Match) -> None:
        """Remembers what a request was served, so that a verdict on it can be learned from."""
        pending = match.pending
        if match.replay is not None and pending is not None:
            key = pending.kept.answer.key
            self.operations.note_served(request_id, Served(key, pending.features, pending.judgement))

    def _by_evidence(self, asked: Asked, found: Found, equal: Kept) -> Match:
        evidence = check_evidence(equal.answer, found.hits)
        replay = renumbered(equal.answer, found.context) if evidence.holds else None
        if replay is None:
            return Match(ReuseReport(reason="evidence", key=equal.answer.key.hex, similarity=1.0, evidence=evidence))
        equal.checked_at_ns = self._tools.now_ns()
        return Match(self._served(Reuse.EQUAL, equal, 1.0, evidence), replay, equal)

    def _similar(self, asked: Asked, found: Found) -> Match | None:
        """Returns the best of the answers to similar questions, or the reason why none serves; None without any."""
        assert found.dense is not None
        least = self._settings().min_similarity
        nearest = list(self._store.near(asked.partition, found.dense.vector, _MOST_NEIGHBOURS, least))
        facts = read_facts(asked.question) if nearest else None
        matches = [self._judged(asked, facts, found, near) for near in nearest if near.kept.answer.key != asked.key]
        judged = [match for match in matches if match.pending is not None]
        best = max(judged, key=_score, default=None)
        return best or next(iter(matches), None)

    def _judged(self, asked: Asked, facts: Facts | None, found: Found, near: Near) -> Match:
        """Sends one answer through gates 2 to 4."""
        kept, similarity = near.kept, near.similarity
        report = ReuseReport(key=kept.answer.key.hex, similarity=similarity)
        if not self._fresh(kept.answer, asked.control):
            return Match(replace(report, reason="age"))
        assert facts is not None
        comparison = compare(facts, kept.facts)
        if comparison.refused:
            return Match(replace(report, reason=comparison.refused))
        evidence = check_evidence(kept.answer, found.hits)
        replay = renumbered(kept.answer, found.context) if evidence.holds else None
        if replay is None:
            return Match(replace(report, reason="evidence", evidence=evidence))
        assert found.dense is not None
        assert kept.encoded is not None
        features = features_of(found.dense, kept.encoded, comparison)
        limit = self._settings().max_error_rate
        judgement = self._risks.of(asked.scope.key).judge(kept.answer.key.digest, features, limit)
        risk = RiskReport(judgement.error_estimate, judgement.error_bound, limit, judgement.labels)
        pending = Pending(kept, features, judgement)
        if not judgement.serve:
            return Match(replace(report, reason="risk", evidence=evidence, risk=risk), pending=pending)
        served = replace(self._served(Reuse.SIMILAR, kept, similarity, evidence), risk=risk)
        shadowed = self._tools.draw() < self._settings().shadow_share
        return Match(replace(served, shadowed=shadowed), replay, kept, pending)

    def _served(self, reuse: Reuse, kept: Kept, similarity: float, evidence: EvidenceReport) -> ReuseReport:
        return ReuseReport(
            reuse=reuse,
            key=kept.answer.key.hex,
            tier=kept.tier,
            age_ms=max(0, int(1e3 * (self._tools.now_s() - kept.answer.stored_at_s))),
            similarity=similarity,
            evidence=evidence,
        )

    def _fresh(self, answer: Answer, control: CacheControl) -> bool:
        age_s = self._tools.now_s() - answer.stored_at_s
        if age_s > self._settings().ttl_s * _jitter(answer):
            self._store.remove(answer.key)
            return False
        return control.max_age_s is None or age_s <= control.max_age_s


def answer_of(asked: Asked, found: Found, made: Made, now_s: float) -> Answer:
    """Returns the answer as it is kept."""
    numbers = {mark.number for mark in made.verified.citations}
    return Answer(
        key=asked.key,
        partition=asked.partition,
        question=asked.question,
        text=made.verified.text,
        marks=made.verified.citations,
        cited=tuple(Cited(one.number, one.chunk_ids) for one in found.context.citations if one.number in numbers),
        seen=tuple(Seen(hit.passage.chunk_id, hit.passage.document_id, fingerprint(hit.passage)) for hit in found.hits),
        backend=made.backend,
        model=made.end.model,
        stored_at_s=now_s,
    )


def _worth_keeping(found: Found, made: Made) -> bool:
    unflagged = not (found.degraded or found.query_truncated or made.verified.unknown_count)
    return unflagged and made.whole and bool(made.verified.citations)


def _jitter(answer: Answer) -> float:
    """Returns 0.9 to 1.1, always the same for one answer, so that answers made together do not end together."""
    return 0.9 + 0.2 * answer.key.digest[0] / 255.0


def _score(match: Match) -> tuple[bool, float]:
    assert match.pending is not None
    return match.replay is not None, match.pending.judgement.score
