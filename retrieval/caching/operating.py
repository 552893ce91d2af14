"""What operators do with the caches of a server: see how they fare, and forget what they are told to."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from retrieval.answers.entry import Answer
from retrieval.caching.caches import Caches
from retrieval.caching.keys import CacheKey, Purpose
from retrieval.caching.memory import MemoryFigures
from retrieval.caching.shared import Selection, SharedTier
from retrieval.types import Found


@dataclass(frozen=True, slots=True)
class Chosen:
    """What to forget: all of a tenant's that agrees with every field that is not None."""

    tenant: str
    collection: str | None = None
    document_id: str | None = None  # only what was made from it; not without a collection
    older_than_s: float | None = None  # only what was made longer ago than this


@dataclass(frozen=True, slots=True)
class Forgotten:
    """How many values were forgotten."""

    memory: int
    shared: int
    shared_available: bool  # False when what is in the shared tier ends by its time to live only


def figures_of(caches: Caches) -> list[MemoryFigures]:
    """Returns how each cache of this process fares."""
    plain = (caches.embeddings, caches.token_codes, caches.pair_scores.cache, caches.results)
    return [*(cache.figures for cache in plain), caches.answers.operations.figures, caches.summaries.figures]


async def forget(caches: Caches, chosen: Chosen) -> Forgotten:
    """Forgets what is chosen, here and in the shared tier.

    Vectors and scores go only when no collection is named, since they belong to none; those in this process do not know
    their age, so they go whatever it is. Summaries of conversations know neither age nor documents, and go likewise.
    """
    memory = _forget_here(caches, chosen)
    shared = await _forget_there(caches.shared, chosen)
    if caches.answers.shared:
        memory += _forget_here(caches, chosen)  # what was read from the shared tier before it was gone there
    return Forgotten(memory, shared or 0, shared is not None)


def _forget_here(caches: Caches, chosen: Chosen) -> int:
    before_s = None if chosen.older_than_s is None else time.time() - chosen.older_than_s

    def takes(key: CacheKey, made_at_s: float, document_ids: Iterable[str]) -> bool:
        return (
            key.tenant == chosen.tenant
            and chosen.collection in {None, key.collection}
            and (before_s is None or made_at_s < before_s)
            and (chosen.document_id is None or chosen.document_id in document_ids)
        )

    def takes_answer(answer: Answer) -> bool:
        return takes(answer.key, answer.stored_at_s, (one.document_id for one in answer.seen))

    def takes_result(key: CacheKey, found: Found) -> bool:
        return takes(key, found.made_at_s, (hit.passage.document_id for hit in found.hits))

    count = caches.answers.operations.forget_where(takes_answer) + caches.results.forget_where(takes_result)
    count += caches.summaries.forget(chosen.tenant, chosen.collection or "")
    if chosen.collection is not None:
        return count
    whose = _of_tenant(chosen.tenant)
    plain = (caches.embeddings, caches.token_codes, caches.pair_scores.cache)
    return count + sum(cache.forget_where(whose) for cache in plain)


def _of_tenant(tenant: str) -> Callable[[CacheKey, object], bool]:
    return lambda key, value: key.tenant == tenant


async def _forget_there(tier: SharedTier, chosen: Chosen) -> int | None:
    """Returns how many were forgotten; None when the tier could not be asked, or not for all of them."""
    # Names in the shared tier do not say which documents a value was made from.
    purposes = (None,) if chosen.document_id is None else (Purpose.RESULT, Purpose.ANSWER)
    counts = [
        await tier.invalidate(Selection(chosen.tenant, chosen.collection, purpose, chosen.older_than_s))
        for purpose in purposes
    ]
    known = [count for count in counts if count is not None]
    return sum(known) if len(known) == len(counts) else None
