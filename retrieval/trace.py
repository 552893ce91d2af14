"""What one request notes about itself on its way: its clock, its steps down, its caches, its reranking."""

from __future__ import annotations

from retrieval.clock import CacheUse, Ledger, RerankReport, StageClock
from retrieval.route import GenerationReport, RouteReport
from retrieval.types import Found

_WITHOUT_SHARED = "shared_cache_unavailable"


class Trace:
    """Collects what becomes the ledger. Belongs to one request."""

    __slots__ = (
        "_caches",
        "_degraded",
        "_shaping",
        "candidates",
        "clock",
        "first_delta_ns",
        "generation",
        "query_tokens",
        "query_truncated",
        "rerank",
        "rewritten",
        "rewritten_by",
        "route",
    )

    def __init__(self, clock: StageClock) -> None:
        self.clock = clock
        self.rerank: RerankReport | None = None
        self.query_tokens = 0
        self.query_truncated = False
        self.candidates = 0
        self.first_delta_ns = 0
        self.rewritten = ""  # the question as it was searched; empty when it was searched as it is
        self.rewritten_by = ""
        self.route: RouteReport | None = None
        self.generation: GenerationReport | None = None
        self._degraded: list[str] = []
        self._shaping: list[str] = []
        self._caches: list[CacheUse] = []

    @property
    def shaping(self) -> tuple[str, ...]:
        """The steps down that changed what was found; what they shaped is kept by no cache."""
        return tuple(self._shaping)

    def degrade(self, step: str) -> None:
        """Names a step down that changed what was found."""
        self._degraded.append(step)
        self._shaping.append(step)

    def step_down(self, step: str) -> None:
        """Names a step down that changed nothing of what was found."""
        self._degraded.append(step)

    def cache(self, name: str, tier: str = "") -> None:
        """Notes that a cache was asked, and where the value was; empty for a miss."""
        self._caches.append(CacheUse(name, bool(tier), tier))

    @property
    def lacks_shared_tier(self) -> bool:
        """Whether the tier that processes share could not be asked."""
        return _WITHOUT_SHARED in self._degraded

    def without_shared_tier(self) -> None:
        """Notes that the tier that processes share could not be asked: slower, but nothing else."""
        if not self.lacks_shared_tier:
            self.step_down(_WITHOUT_SHARED)

    def follow(self, found: Found) -> None:
        """Takes over what is to be said of a result that was made for another request."""
        self.query_tokens, self.query_truncated = found.query_tokens, found.query_truncated
        self.candidates = found.candidates
        for step in found.degraded:
            self.degrade(step)

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
            route=self.route,
            generation=self.generation,
        )
