"""What one request notes about itself on its way: its clock, its steps down, its caches, its reranking."""

from __future__ import annotations

from retrieval.clock import CacheUse, Ledger, RerankReport, StageClock


class Trace:
    """Collects what becomes the ledger. Belongs to one request."""

    __slots__ = (
        "_caches",
        "_degraded",
        "candidates",
        "clock",
        "first_delta_ns",
        "query_tokens",
        "query_truncated",
        "rerank",
    )

    def __init__(self, clock: StageClock) -> None:
        self.clock = clock
        self.rerank: RerankReport | None = None
        self.query_tokens = 0
        self.query_truncated = False
        self.candidates = 0
        self.first_delta_ns = 0
        self._degraded: list[str] = []
        self._caches: list[CacheUse] = []

    def degrade(self, step: str) -> None:
        """Names a step down that was taken."""
        self._degraded.append(step)

    def cache(self, name: str, hit: bool) -> None:
        """Notes that a cache was asked."""
        self._caches.append(CacheUse(name, hit))

    def ledger(self) -> Ledger:
        """Returns everything up to now."""
        stages, total_ns = self.clock.costs()
        return Ledger(
            stages=stages,
            total_ns=total_ns,
            degraded=tuple(self._degraded),
            caches=tuple(self._caches),
            rerank=self.rerank,
            query_tokens=self.query_tokens,
            query_truncated=self.query_truncated,
            candidates=self.candidates,
            first_delta_ns=self.first_delta_ns,
        )
