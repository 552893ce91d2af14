"""Servers that share an index and a Redis, each with caches of its own: what a load balancer would choose among."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from bench._common.consistency.engines import FactBackend, WordEncoder, passage_counter
from encoders.types import WorkClass
from indexers.chunking import Chunker
from indexers.index import Catalog
from indexers.ingest import Indexer
from indexers.types import CollectionKey, Document
from retrieval.admission import Admission
from retrieval.caching.open import open_caches, open_shared_tier
from retrieval.caching.redis.tier import RedisTier
from retrieval.caching.shared import SharedTier
from retrieval.collection_encoders import OneEncoder
from retrieval.dispatch.open import dispatcher_over
from retrieval.live import LiveSettings
from retrieval.pipeline import Engines, Pipeline
from retrieval.settings.load import Loaded, load_settings

_MIB = 1 << 20


class Replica:
    """One server's request path; `restart` loses its memory."""

    def __init__(self, catalog: Catalog, flags: Mapping[str, Any], backend: FactBackend) -> None:
        """`flags` are settings by path; the replica reads them again with each `reload`."""
        self.catalog = catalog
        self._flags = flags
        self._backend = backend
        self._encoder = WordEncoder()
        self._open()

    def _open(self) -> None:
        self.live = LiveSettings(self._load(), self._load)
        self.tier: SharedTier = open_shared_tier(self.live.current.cache.redis)
        self.caches = open_caches(self.live, self.tier)
        engines = Engines(
            catalog=self.catalog,
            encoders=OneEncoder(self._encoder),
            caches=self.caches,
            reranker=None,
            counter=passage_counter(),
            dispatcher=dispatcher_over(self._backend),
        )
        self.pipeline = Pipeline(engines, Admission(1000, 1000, 60_000), self.live)

    async def upsert(self, key: CollectionKey, documents: Sequence[Document]) -> None:
        """Writes documents through this server; when it returns, they are acknowledged."""
        index = await self.catalog.open(key)
        await Indexer(index, self._encoder, Chunker(passage_counter())).upsert(documents, WorkClass.BULK)

    async def restart(self) -> None:
        """Ends the server and starts it again."""
        await self.close()
        self._open()

    async def available(self, seconds: float) -> bool:
        """Waits until the shared tier is available to this server."""
        return not isinstance(self.tier, RedisTier) or await self.tier.available_within(seconds)

    async def flush(self) -> None:
        """Waits until what goes to the shared tier is there."""
        if isinstance(self.tier, RedisTier):
            await self.tier.flush()

    async def close(self) -> None:
        """Ends the server."""
        await self.pipeline.close()
        await self.tier.close()

    def _load(self) -> Loaded:
        return load_settings(None, {}, self._flags)


def flags_for(redis_url: str) -> dict[str, Any]:
    """Returns settings in which similar questions are served soon, and memory is short enough for Redis to matter."""
    return {
        "retrieval.top_k": 6,
        "retrieval.candidates": 20,
        "rerank.enabled": False,
        "rerank.late.enabled": False,
        "cache.results_bytes": _MIB,
        "cache.answers.memory_bytes": _MIB // 4,
        "cache.answers.enabled": True,
        "cache.answers.similar": True,
        "cache.answers.min_similarity": 0.7,
        "cache.answers.max_error_rate": 0.4,
        "cache.answers.ttl_s": 86_400.0,
        "cache.answers.shadow_share": 0.2,
        "cache.answers.trust_ms": 0,
        "cache.policies": (),
        "cache.redis.url": redis_url,
        "cache.redis.budget_ms": 25.0,
        "cache.redis.share_results": True,
        "cache.redis.compress_above_bytes": 600,
    }
