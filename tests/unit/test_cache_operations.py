"""How operators see the caches of a server, and empty them."""

from __future__ import annotations

import time

import numpy as np
import pytest
from prometheus_client import CollectorRegistry

from encoders.types import EncodedQuery
from indexers.types import CollectionKey, Epoch, Passage
from rerank.score_cache import Asker
from retrieval.answers.entry import Answer, Seen
from retrieval.answers.guard import read_facts
from retrieval.answers.operating import answer_key
from retrieval.answers.store import Kept
from retrieval.caching.caches import Caches
from retrieval.caching.embeddings import CachedQuery
from retrieval.caching.keys import Purpose
from retrieval.caching.open import open_caches
from retrieval.caching.operating import Chosen, Forgotten, figures_of, forget
from retrieval.conversation.summaries import Owner, _Key
from retrieval.live import LiveSettings
from retrieval.scope import VectorSpace
from retrieval.settings import Settings
from retrieval.settings.load import Loaded
from retrieval.telemetry.caches import CacheCollector
from retrieval.types import Context, Found, Hit, ScoreParts
from tests.fakes.cache_keys import cache_key
from tests.fakes.shared_tier import MemoryTier

NAMES = ["query_embeddings", "token_codes", "pair_scores", "results", "answers", "summaries"]
VECTOR = np.array([1.0, 0.0], dtype=np.float32)


def _found(*documents: str, age_s: float = 0.0) -> Found:
    hits = [Hit(Passage(f"c-{one}", one, "", (), "text", 0, 4, 0, 0, {}), 0.5, ScoreParts()) for one in documents]
    return Found(tuple(hits), Context("", 0, 9, "t"), Epoch(1, 1), made_at_s=time.time() - age_s)


def _keep_answer(caches: Caches, tenant: str, collection: str, document: str, age_s: float = 0.0) -> None:
    key = answer_key(tenant, collection, document.encode().ljust(32, b"."))
    partition = answer_key(tenant, collection, b"p" * 32)
    seen, made_at_s = (Seen(f"c-{document}", document, "f"),), time.time() - age_s
    answer = Answer(key, partition, "q", "a [1]", (), (), seen, "b", "m", made_at_s)
    caches.answers._store.put(Kept(answer, read_facts("q"), EncodedQuery(VECTOR, None), None, 0))
    caches.shared.put(key, b"answer", 60.0)


@pytest.fixture
def tier() -> MemoryTier:
    """A tier that the caches share with others."""
    return MemoryTier()


@pytest.fixture
def caches(tier: MemoryTier) -> Caches:
    """Caches with values of two tenants and two collections."""
    live = LiveSettings(loaded := Loaded(Settings(), {}, None), lambda: loaded)
    made = open_caches(live, tier)
    for tenant in ("acme", "beta"):
        made.embeddings.put(cache_key("q", tenant, "", Purpose.EMBEDDING), CachedQuery(EncodedQuery(VECTOR, None), 3))
        made.token_codes.put(cache_key("t", tenant, "", Purpose.TOKEN_CODES), np.zeros((2, 4), dtype=np.uint8))
        made.pair_scores.put(Asker(tenant, "m@1", "q"), ["p"], np.array([0.5]))
        made.summaries._kept.put(_Key(Owner(tenant, "", "docs"), tenant.encode()), "They spoke of valves.")
        for collection in ("docs", "notes"):
            made.results.put(cache_key("old", tenant, collection), _found("valve", "pump", age_s=100.0))
            made.results.put(cache_key("new", tenant, collection), _found("soup"))
            _keep_answer(made, tenant, collection, "valve", age_s=100.0)
            _keep_answer(made, tenant, collection, "soup")
    return made


def _left(caches: Caches) -> dict[str, int]:
    return {figures.cache: figures.entries for figures in figures_of(caches)}


def test_figures_name_every_cache(caches: Caches) -> None:
    """Each cache of the process shows what it holds and may hold, and how look-ups went."""
    caches.results.get(cache_key("new", "acme"))
    caches.results.get(cache_key("never", "acme"))
    by_name = {figures.cache: figures for figures in figures_of(caches)}
    assert list(by_name) == NAMES
    results = by_name["results"]
    assert (results.entries, results.hits, results.misses, results.evictions) == (8, 1, 1, 0)
    assert 0 < results.used_bytes < results.capacity_bytes == Settings().cache.results_bytes


async def test_forget_without_anything_more_takes_all_of_the_tenant(caches: Caches, tier: MemoryTier) -> None:
    """Every cache and the shared tier lose the tenant's values, and nobody else's."""
    shared = len(tier.values)
    forgotten = await forget(caches, Chosen("acme"))
    assert forgotten == Forgotten(12, shared // 2, shared_available=True)
    assert _left(caches) == dict(zip(NAMES, (1, 1, 1, 4, 4, 1), strict=True))
    assert {key.tenant for key in tier.values} == {"beta"}


async def test_forget_a_collection_leaves_what_belongs_to_none(caches: Caches) -> None:
    """Results, answers and summaries of the collection go; vectors and scores stay."""
    assert (await forget(caches, Chosen("acme", "docs"))).memory == 5
    assert _left(caches) == dict(zip(NAMES, (2, 2, 2, 6, 6, 1), strict=True))


async def test_forget_a_document_takes_what_was_made_from_it(caches: Caches, tier: MemoryTier) -> None:
    """Here only what was made from the document; the shared tier loses all answers of its collection."""
    forgotten = await forget(caches, Chosen("acme", "docs", "valve"))
    assert (forgotten.memory, forgotten.shared) == (3, 2)  # a summary does not know its documents
    assert _left(caches) == dict(zip(NAMES, (2, 2, 2, 7, 7, 1), strict=True))
    assert sum(key.purpose is Purpose.ANSWER for key in tier.values) == 6
    assert (await forget(caches, Chosen("acme", "docs", "nobody"))).memory == 0


async def test_forget_by_age_takes_what_is_older(caches: Caches) -> None:
    """Results and answers know their age; what does not know it goes all the same."""
    assert (await forget(caches, Chosen("acme", "docs", older_than_s=50.0))).memory == 3
    assert (await forget(caches, Chosen("acme", older_than_s=50.0))).memory == 5
    assert _left(caches) == dict(zip(NAMES, (1, 1, 1, 6, 6, 1), strict=True))


async def test_forget_says_when_the_shared_tier_is_gone(caches: Caches, tier: MemoryTier) -> None:
    """The own process forgets all the same."""
    tier.available = False
    forgotten = await forget(caches, Chosen("acme", "docs", "valve"))
    assert forgotten == Forgotten(3, 0, shared_available=False)


async def test_forget_takes_what_is_read_meanwhile(caches: Caches, tier: MemoryTier) -> None:
    """A value that came from the shared tier before it was deleted there is forgotten too."""

    class _Busy(MemoryTier):
        async def invalidate(self, selection: object) -> int:
            caches.results.put(cache_key("read meanwhile", "acme", "docs"), _found("valve"))
            return 0

    busy = Caches(
        _Busy(),
        caches.embeddings,
        caches.token_codes,
        caches.pair_scores,
        caches.results,
        caches.answers,
        caches.summaries,
    )
    assert (await forget(busy, Chosen("acme", "docs"))).memory == 6
    assert caches.results.get(cache_key("read meanwhile", "acme", "docs")) is None


def test_metrics_read_the_caches_when_they_are_scraped(caches: Caches, tier: MemoryTier) -> None:
    """Sizes, evictions, comparisons and the shared tier are those of the moment."""
    registry = CollectorRegistry()
    registry.register(CacheCollector(caches))
    caches.answers._risks.count_label(VectorSpace(CollectionKey("acme", "docs"), "model@r1"), served=True, agree=False)
    value = registry.get_sample_value
    assert value("headrace_cache_entries", {"cache": "answers"}) == 8
    assert value("headrace_cache_capacity_bytes", {"cache": "results"}) == Settings().cache.results_bytes
    assert (value("headrace_cache_bytes", {"cache": "pair_scores"}) or 0) > 0
    assert value("headrace_cache_evictions_total", {"cache": "answers"}) == 0
    assert value("headrace_answer_comparisons_total", {"served": "yes", "result": "disagree"}) == 1
    assert value("headrace_answer_comparisons_total", {"served": "no", "result": "agree"}) == 0
    assert value("headrace_shared_cache_available") == 1
    tier.available = False
    assert value("headrace_shared_cache_available") == 0
    assert value("headrace_shared_cache_failures_total") == 2
