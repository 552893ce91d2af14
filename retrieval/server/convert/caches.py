"""What operators and apps ask of the caches: the checks of their requests, and the replies as messages."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping

from headrace.v1 import admin_pb2, retrieval_pb2
from indexers.types import Passage
from retrieval.answers.entry import fingerprint
from retrieval.answers.operating import Located, Verdict, answer_key
from retrieval.answers.risks import Learned
from retrieval.caching.keys import CacheKey
from retrieval.caching.memory import MemoryFigures
from retrieval.caching.operating import Chosen, Forgotten
from retrieval.caching.shared import SharedStats
from retrieval.errors import InvalidRequest
from retrieval.server.convert.ledgers import TIERS
from retrieval.server.convert.texts import checked_key

_DIGEST = re.compile(r"[0-9a-fA-F]{64}")
_VERDICTS: Mapping[int, Verdict] = {
    retrieval_pb2.ANSWER_VERDICT_GOOD: Verdict.GOOD,
    retrieval_pb2.ANSWER_VERDICT_BAD: Verdict.BAD,
}


def answer_key_from_pb(tenant: str, collection: str, key: str) -> CacheKey:
    """Returns the key of an answer of the tenant.

    Raises:
        InvalidRequest, InvalidName: names the field and the bound.
    """
    owner = checked_key(tenant, collection)
    if _DIGEST.fullmatch(key) is None:
        bound = "64 hexadecimal digits"
        raise InvalidRequest("key", bound, f"key must be {bound}, as AnswerReuse.key gives it; {len(key)} characters")
    return answer_key(owner.tenant, owner.collection, bytes.fromhex(key))


def verdict_from_pb(verdict: int) -> Verdict:
    """Returns the verdict.

    Raises:
        InvalidRequest: none is given.
    """
    if verdict not in _VERDICTS:
        bound = "ANSWER_VERDICT_GOOD or ANSWER_VERDICT_BAD"
        raise InvalidRequest("verdict", bound, f"verdict must be {bound}; say which")
    return _VERDICTS[verdict]


def chosen_from_pb(tenant: str, message: admin_pb2.InvalidateCacheRequest) -> Chosen:
    """Returns what to forget.

    Raises:
        InvalidRequest, InvalidName: names the field and the bound.
    """
    if message.document_id and not message.collection:
        bound = "given with document_id"
        raise InvalidRequest("collection", bound, f"collection must be {bound}; name the document's collection")
    older_than_s = message.older_than_s if message.HasField("older_than_s") else None
    if older_than_s is not None and not (math.isfinite(older_than_s) and older_than_s >= 0.0):
        bound = "0 or more"
        raise InvalidRequest("older_than_s", bound, f"older_than_s is {older_than_s:g}; it must be {bound}")
    collection = checked_key(tenant, message.collection).collection if message.collection else None
    return Chosen(tenant, collection, message.document_id or None, older_than_s)


def forgotten_to_pb(forgotten: Forgotten) -> admin_pb2.InvalidateCacheResponse:
    """Returns what was forgotten as a message."""
    return admin_pb2.InvalidateCacheResponse(
        memory=forgotten.memory, shared=forgotten.shared, shared_available=forgotten.shared_available
    )


def figures_to_pb(figures: MemoryFigures) -> admin_pb2.CacheStats:
    """Returns how a cache of this process fares as a message."""
    return admin_pb2.CacheStats(
        cache=figures.cache,
        entries=figures.entries,
        used_bytes=figures.used_bytes,
        capacity_bytes=figures.capacity_bytes,
        hits=figures.hits,
        misses=figures.misses,
        evictions=figures.evictions,
    )


def shared_to_pb(stats: SharedStats) -> admin_pb2.SharedTierStats | None:
    """Returns how the shared tier fares as a message; None when there is none."""
    if stats.kind == "none":
        return None
    return admin_pb2.SharedTierStats(
        kind=stats.kind,
        available=stats.available,
        lookups=stats.lookups,
        hits=stats.hits,
        damaged=stats.damaged,
        writes=stats.writes,
        dropped_writes=stats.dropped_writes,
        failures=stats.failures,
    )


def risk_to_pb(collection: str, learned: Learned, max_error_rate: float) -> admin_pb2.RiskStats:
    """Returns what was learned of a collection as a message."""
    return admin_pb2.RiskStats(
        collection=collection,
        labels=learned.labels,
        errors=learned.errors,
        served=learned.served,
        serving=learned.control.serves(max_error_rate),
        evidence=learned.control.figures.labels,
    )


def explained_to_pb(located: Located, now: Iterable[Passage]) -> admin_pb2.ExplainCacheKeyResponse:
    """Returns an answer as a message; `now` are those of its passages that the collection still holds."""
    answer = located.answer
    cited = {chunk_id for source in answer.cited for chunk_id in source.chunk_ids}
    contents = {passage.chunk_id: fingerprint(passage) for passage in now}
    return admin_pb2.ExplainCacheKeyResponse(
        question=answer.question,
        text=answer.text,
        age_ms=int(1e3 * located.age_s),
        tier=TIERS[located.tier],
        backend=answer.backend,
        model=answer.model,
        passages=[
            admin_pb2.ExplainedPassage(
                chunk_id=one.chunk_id,
                document_id=one.document_id,
                cited=one.chunk_id in cited,
                unchanged=contents.get(one.chunk_id) == one.fingerprint,
            )
            for one in answer.seen
        ],
    )
