"""Charges every nanosecond of a request to exactly one stage, or to `other`.

The parts sum to the whole because a clock reading ends one part and begins the next: nothing is computed by
subtraction from a total. Queue and compute time are reported by the engines and kept apart from the wall time.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType

from rerank.types import Stop
from retrieval.route import GenerationReport, RouteReport


class Stage(enum.Enum):
    """The stages of a request, in their order."""

    REWRITE = "rewrite"
    ADMIT = "admit"
    LOOKUP = "lookup"
    EMBED = "embed"
    MATCH = "match"
    SEARCH = "search"
    FUSE = "fuse"
    FETCH = "fetch"
    RERANK = "rerank"
    ASSEMBLE = "assemble"
    ROUTE = "route"
    GENERATE = "generate"
    VERIFY = "verify"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class StageCost:
    """What one stage cost."""

    stage: Stage
    wall_ns: int
    queue_ns: int
    compute_ns: int


@dataclass(frozen=True, slots=True)
class CacheUse:
    """One cache that was asked."""

    cache: str
    hit: bool
    tier: str = ""  # where the value was: `memory`, `shared`, or `flight` for work of another request; empty for a miss


@dataclass(frozen=True, slots=True)
class LateReport:
    """What late interaction did; `skipped` says why it took no part and is empty when it did."""

    model: str = ""  # the encoder whose token vectors were compared
    passages: int = 0
    computed: int = 0  # of the passages, those whose token vectors were not stored and had to be computed
    skipped: str = ""


@dataclass(frozen=True, slots=True)
class RerankReport:
    """What reranking did."""

    model: str  # the cross-encoder; empty when none is configured
    pairs: int  # that the cross-encoder ran on
    tokens: int  # of those pairs
    stop: Stop | None  # None when neither stage could take part
    cached_pairs: int = 0  # whose logit was known from before
    late: LateReport = LateReport()


@dataclass(frozen=True, slots=True)
class Ledger:
    """Where the time of a request went, and what was done for it; `other` is the last entry of `stages`."""

    stages: tuple[StageCost, ...]
    total_ns: int
    degraded: tuple[str, ...] = ()
    caches: tuple[CacheUse, ...] = ()
    rerank: RerankReport | None = None
    query_tokens: int = 0
    query_truncated: bool = False
    candidates: int = 0
    first_delta_ns: int = 0
    route: RouteReport | None = None
    generation: GenerationReport | None = None

    def wall_ns(self, stage: Stage) -> int:
        """Returns the wall time of a stage; 0 when it was not entered."""
        return next((cost.wall_ns for cost in self.stages if cost.stage is stage), 0)


class StageClock:
    """The stopwatch of one request. Not shared between requests, not thread-safe."""

    __slots__ = ("_compute_ns", "_current", "_last_ns", "_now_ns", "_other_ns", "_queue_ns", "_started_ns", "_wall_ns")

    def __init__(self, now_ns: Callable[[], int] = time.perf_counter_ns) -> None:
        self._now_ns = now_ns
        self._started_ns = self._last_ns = now_ns()
        self._current: Stage | None = None
        self._other_ns = 0
        self._wall_ns: dict[Stage, int] = {}
        self._queue_ns: dict[Stage, int] = {}
        self._compute_ns: dict[Stage, int] = {}

    def stage(self, stage: Stage) -> _StageSpan:
        """Returns a context manager; the time inside it belongs to the stage. Stages do not nest or repeat."""
        return _StageSpan(self, stage)

    def charge(self, *, queue_ns: int = 0, compute_ns: int = 0) -> None:
        """Adds what an engine says of its work to the stage that is open."""
        if self._current is None:
            raise RuntimeError("no stage is open")
        self._queue_ns[self._current] = self._queue_ns.get(self._current, 0) + queue_ns
        self._compute_ns[self._current] = self._compute_ns.get(self._current, 0) + compute_ns

    def elapsed_ns(self) -> int:
        """Returns the time since the request came."""
        return self._now_ns() - self._started_ns

    def costs(self) -> tuple[tuple[StageCost, ...], int]:
        """Returns the cost of each stage so far, `other` last, and their sum. An open stage is charged up to now."""
        now = self._now_ns()
        open_ns = now - self._last_ns
        walls = dict(self._wall_ns)
        other = self._other_ns
        if self._current is None:
            other += open_ns
        else:
            walls[self._current] = open_ns
        stages = [
            StageCost(stage, wall, self._queue_ns.get(stage, 0), self._compute_ns.get(stage, 0))
            for stage, wall in walls.items()
        ]
        stages.append(StageCost(Stage.OTHER, other, 0, 0))
        return tuple(stages), now - self._started_ns

    def _enter(self, stage: Stage) -> None:
        if self._current is not None or stage in self._wall_ns or stage is Stage.OTHER:
            raise RuntimeError(f"stage {stage.value} cannot be entered now")
        now = self._now_ns()
        self._other_ns += now - self._last_ns
        self._last_ns = now
        self._current = stage

    def _leave(self, stage: Stage) -> None:
        now = self._now_ns()
        self._wall_ns[stage] = now - self._last_ns
        self._last_ns = now
        self._current = None


class _StageSpan:
    """The time between entering and leaving a stage."""

    __slots__ = ("_clock", "_stage")

    def __init__(self, clock: StageClock, stage: Stage) -> None:
        self._clock = clock
        self._stage = stage

    def __enter__(self) -> None:
        self._clock._enter(self._stage)  # noqa: SLF001 - one idea in two classes

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._clock._leave(self._stage)  # noqa: SLF001
