"""What is known already of exactly this question: its answer, its result, its vectors; one round trip for all of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from retrieval.answers.asking import Asked
from retrieval.answers.gates import Match
from retrieval.answers.store import Kept
from retrieval.caching.caches import Caches
from retrieval.caching.embeddings import CachedQuery, EmbeddingShape
from retrieval.caching.keys import CacheKey
from retrieval.caching.shared import Stored
from retrieval.scope import Scope
from retrieval.stages.embed import DenseQuery
from retrieval.trace import Trace
from retrieval.types import Found, Mode, RetrieveRequest


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is looked for."""

    request: RetrieveRequest
    scope: Scope
    shape: EmbeddingShape  # of the vectors that the collection can be searched with
    result_key: CacheKey
    asked: Asked | None  # None when no answer is wanted


@dataclass(frozen=True, slots=True)
class Known:
    """What was there."""

    found: Found | None = None
    dense: DenseQuery | None = None
    equal: Kept | None = None  # the answer to the same question; whether it serves is decided after retrieval
    match: Match | None = None  # decided a moment ago, on `found`, and not to be decided now


async def look_up(caches: Caches, wanted: Wanted, trace: Trace) -> Known:
    """Asks this process first, then the shared tier for what is missing here."""
    if wanted.asked is not None:
        await caches.answers.prepare(wanted.asked)
    looking = _Looking(caches, wanted)
    if missing := looking.missing():
        there = await caches.shared.get_many(missing)
        if not there.available:
            trace.without_shared_tier()
        looking.take(dict(zip(missing, there.values, strict=True)))
    looking.note(trace)
    return looking.known()


class _Looking:
    """One look-up: what was found so far, and in which tier."""

    def __init__(self, caches: Caches, wanted: Wanted) -> None:
        self._caches = caches
        self._wanted = wanted
        self._control = wanted.request.cache_control
        self._embeds = wanted.request.thresholds.mode is not Mode.SPARSE
        self._embedding_key = wanted.scope.embedding_key(wanted.request.query)
        self._tiers = {"results": "", "embeddings": ""}
        self._found = self._young(caches.results.get(wanted.result_key))
        self._query = self._fitting(caches.embeddings.get(self._embedding_key)) if self._embeds else None
        self._equal = None if wanted.asked is None else caches.answers.recall(wanted.asked)
        self._mark("memory")

    def missing(self) -> list[CacheKey]:
        """Returns what the shared tier may have."""
        keys = []
        fresh, asked = self._control.no_cache, self._wanted.asked
        if asked is not None and self._equal is None and self._caches.answers.shared and not fresh:
            keys.append(asked.key)
        if self._found is not None:
            return keys
        if self._caches.results.shared and not fresh:
            keys.append(self._wanted.result_key)
        if self._embeds and self._query is None and self._caches.embeddings.shared:
            keys.append(self._embedding_key)
        return keys

    def take(self, there: Mapping[CacheKey, Stored | None]) -> None:
        """Takes what the shared tier gave."""
        asked, caches = self._wanted.asked, self._caches
        if self._found is None:
            self._found = self._young(caches.results.take(self._wanted.result_key, there.get(self._wanted.result_key)))
        if self._query is None:
            self._query = self._fitting(caches.embeddings.take(self._embedding_key, there.get(self._embedding_key)))
        if self._equal is None and asked is not None:
            self._equal = caches.answers.take(asked, there.get(asked.key), self._query.encoded if self._query else None)
        self._mark("shared")

    def note(self, trace: Trace) -> None:
        """Says which caches were asked, and where their values were."""
        trace.cache(self._caches.results.name, self._tiers["results"])
        if self._embeds and self._found is None:
            trace.cache(self._caches.embeddings.name, self._tiers["embeddings"])

    def known(self) -> Known:
        """Returns all that was found."""
        query, asked, kept = self._query, self._wanted.asked, self._equal
        dense = None if query is None else DenseQuery(query.encoded, query.token_count, truncated=False)
        if asked is not None and kept is not None and kept.result_key and self._caches.answers.gates.trusted(kept):
            found = self._caches.results.get(kept.result_key)
            match = None if found is None else self._caches.answers.gates.trust(kept, found)
            if match is not None:
                return Known(found, dense, kept, match)
        return Known(_with_vectors(self._found, query), dense, kept)

    def _mark(self, tier: str) -> None:
        for name, value in (("results", self._found), ("embeddings", self._query)):
            if value is not None and not self._tiers[name]:
                self._tiers[name] = tier

    def _fitting(self, query: CachedQuery | None) -> CachedQuery | None:
        """Returns vectors that are of the encoder's shape; a shared tier may hold anything under a key."""
        return query if query is not None and query.shape == self._wanted.shape else None

    def _young(self, found: Found | None) -> Found | None:
        if found is None or self._control.no_cache:
            return None
        too_old = self._control.max_age_s is not None and time.time() - found.made_at_s > self._control.max_age_s
        return None if too_old else found


def _with_vectors(found: Found | None, query: CachedQuery | None) -> Found | None:
    """Gives a result of the shared tier, where vectors are left out, those of its question when they are known."""
    if found is None or query is None or found.dense is not None:
        return found
    return replace(found, dense=query.encoded)
