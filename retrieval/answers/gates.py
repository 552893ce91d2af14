"""The gates that an answer passes before it serves again, decided after retrieval.

Gate 1 is the partition: answers elsewhere do not exist for a question. Gate 2 is the question (equal after
normalisation, or similar and past the guard), gate 3 the evidence (retrieval of now still finds what the answer was
made from), and gate 4, for similar questions, the risk (evidence that the error rate stays within its bound).
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from retrieval.answers.asking import Asked
from retrieval.answers.entry import Answer
from retrieval.answers.evidence import check_evidence
from retrieval.answers.guard import Facts, compare, read_facts
from retrieval.answers.replay import Replay, renumbered
from retrieval.answers.risk import Judgement
from retrieval.answers.risks import Risks
from retrieval.answers.similarity import features_of
from retrieval.answers.store import AnswerStore, Kept, Near
from retrieval.reuse import EvidenceReport, Reuse, ReuseReport, RiskReport
from retrieval.settings.caching import AnswerCacheSettings
from retrieval.types import CacheControl, Found

_MOST_NEIGHBOURS = 8
_LONGEST_READ = 1_000  # code points of a question


@dataclass(frozen=True, slots=True)
class Tools:
    """What the cache asks the world."""

    now_ns: Callable[[], int] = time.monotonic_ns
    now_s: Callable[[], float] = time.time
    draw: Callable[[], float] = random.random


WORLD = Tools()


@dataclass(frozen=True, slots=True)
class Pending:
    """An answer that was judged for a similar question; the next answer to that question is compared with it."""

    kept: Kept
    features: NDArray[np.float64]
    judgement: Judgement
    sampled_share: float = 1.0  # the chance that a comparison is made: that of the shadow for one that serves


@dataclass(frozen=True, slots=True)
class Match:
    """What the gates decided: with `replay`, an answer serves."""

    report: ReuseReport
    replay: Replay | None = None
    kept: Kept | None = None  # the answer that serves
    pending: Pending | None = None  # the similar one that was judged, whether it serves or not


class Gates:
    """Decides whether an answer serves. `settings` gives those in force."""

    def __init__(
        self, store: AnswerStore, risks: Risks, settings: Callable[[], AnswerCacheSettings], tools: Tools
    ) -> None:
        self._store = store
        self._risks = risks
        self._settings = settings
        self._tools = tools

    def is_young(self, answer: Answer, control: CacheControl) -> bool:
        """Tells whether the answer's age is within its time to live and what the caller takes; else it may go."""
        age_s = self._tools.now_s() - answer.stored_at_s
        if age_s > self._settings().ttl_s * _jitter(answer):
            self._store.remove(answer.key)
            return False
        return control.max_age_s is None or age_s <= control.max_age_s

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
        match = Match(ReuseReport(reason="unknown")) if equal is None else self._by_evidence(asked, found, equal)
        if match.replay is not None:
            return match
        settings = self._settings()
        if not settings.similar or settings.max_error_rate == 0.0 or found.dense is None:
            return match
        similar = self._similar(asked, found)
        # What became of the same question says more than why a similar one does not serve.
        return match if similar is None or (equal is not None and similar.replay is None) else similar

    def _by_evidence(self, asked: Asked, found: Found, equal: Kept) -> Match:
        evidence = check_evidence(equal.answer, found.hits)
        replay = renumbered(equal.answer, found.context) if evidence.holds else None
        if replay is None:
            self._store.remove(asked.key)
            return Match(ReuseReport(reason="evidence", key=equal.answer.key.hex, similarity=1.0, evidence=evidence))
        equal.checked_at_ns, equal.result_key = asked.read_at_ns, asked.result_key
        if equal.encoded is None and found.dense is not None:
            equal.encoded = found.dense  # from now on it serves similar questions too
            self._store.put(equal)
        return Match(self._served(Reuse.EQUAL, equal, 1.0, evidence), replay, equal)

    def _similar(self, asked: Asked, found: Found) -> Match | None:
        """Returns the best of the answers to similar questions, or the reason why none serves; None without any."""
        assert found.dense is not None
        least = self._settings().min_similarity
        nearest = list(self._store.near(asked.partition, found.dense.vector, _MOST_NEIGHBOURS, least))
        facts = facts_of(asked.question) if nearest else None
        if facts is None:
            return None
        matches = [self._judged(asked, facts, found, near) for near in nearest if near.kept.answer.key != asked.key]
        judged = [match for match in matches if match.pending is not None]
        best = max(judged, key=_score, default=None)
        return best or next(iter(matches), None)

    def _judged(self, asked: Asked, facts: Facts, found: Found, near: Near) -> Match:
        """Sends one answer through gates 2 to 4."""
        kept, similarity = near.kept, near.similarity
        report = ReuseReport(key=kept.answer.key.hex, similarity=similarity)
        if not self.is_young(kept.answer, asked.control):
            return Match(replace(report, reason="age"))
        assert kept.facts is not None
        comparison = compare(facts, kept.facts)
        if comparison.refused and self._settings().guard == "strict":
            return Match(replace(report, reason=comparison.refused))
        evidence = check_evidence(kept.answer, found.hits)
        replay = renumbered(kept.answer, found.context) if evidence.holds else None
        if replay is None:
            return Match(replace(report, reason="evidence", evidence=evidence))
        assert found.dense is not None
        assert kept.encoded is not None
        features = features_of(found.dense, kept.encoded, comparison)
        limit = self._settings().max_error_rate
        judgement = self._risks.of(asked.scope.space).judge(kept.answer.key.digest, features, limit)
        risk = RiskReport(judgement.error_estimate, judgement.error_bound, limit, judgement.labels)
        if not judgement.serve:
            pending = Pending(kept, features, judgement)
            return Match(replace(report, reason="risk", evidence=evidence, risk=risk), pending=pending)
        served = replace(self._served(Reuse.SIMILAR, kept, similarity, evidence), risk=risk)
        share = self._settings().shadow_share
        shadowed = self._tools.draw() < share
        return Match(replace(served, shadowed=shadowed), replay, kept, Pending(kept, features, judgement, share))

    def _served(self, reuse: Reuse, kept: Kept, similarity: float, evidence: EvidenceReport) -> ReuseReport:
        return ReuseReport(
            reuse=reuse,
            key=kept.answer.key.hex,
            tier=kept.tier,
            age_ms=max(0, int(1e3 * (self._tools.now_s() - kept.answer.stored_at_s))),
            similarity=similarity,
            evidence=evidence,
        )


def facts_of(question: str) -> Facts | None:
    """Returns what a question states; None for one that takes so long to read that others would wait."""
    return read_facts(question) if len(question) <= _LONGEST_READ else None


def _jitter(answer: Answer) -> float:
    """Returns 0.9 to 1.1, always the same for one answer, so that answers made together do not end together."""
    return 0.9 + 0.2 * answer.key.digest[0] / 255.0


def _score(match: Match) -> tuple[bool, float]:
    assert match.pending is not None
    return match.replay is not None, match.pending.judgement.score
