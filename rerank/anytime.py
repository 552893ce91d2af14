"""Scores a pool best first, in small pieces, and stops when more would change nothing or would come too late.

Tokenize all pairs; take from the cache what was scored before; then, until `Progress` names no next piece: start pieces
of one pair a worker, wait for the oldest, note its logits, and plan anew with the pace that was measured so far. A
second piece is begun early while the first one cannot settle the result, so that workers do not wait for each other.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encoders.types import TokenizedText
from rerank.errors import RerankIncomplete
from rerank.progress import Aim, Progress
from rerank.score_cache import Asker, ScoreCache
from rerank.types import AsyncReranker, PairScores, Stop

_SLACK = 1.1  # a plan's last pairs do not end at the same time on all workers


@dataclass(frozen=True, slots=True)
class Pool:
    """The candidates of one query, best first by what is known of them."""

    tenant: str
    query: str
    passages: Sequence[str]
    base: NDArray[np.float64]  # [n], falling
    cached: bool = True  # whether logits may be taken from the cache, and kept there


@dataclass(frozen=True, slots=True)
class Refined:
    """The logits of a pool as far as they were needed, and what they cost."""

    logits: NDArray[np.float64]  # [n]; NaN for pairs that were not scored
    stop: Stop
    usable: bool  # whether a result can be made of scored pairs alone; else the previous order stays
    pair_count: int  # that the model ran on
    cached_count: int  # that were known from before
    token_count: int  # over the pairs that the model ran on
    queue_ns: int
    compute_ns: int


class AnytimeReranker:
    """Refines pools with a cross-encoder."""

    def __init__(
        self, reranker: AsyncReranker, cache: ScoreCache, now_ns: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._reranker = reranker
        self._cache = cache
        self._now_ns = now_ns

    async def refine(self, pool: Pool, aim: Aim, deadline_ns: int | None) -> Refined:
        """Scores as many candidates as it takes. `deadline_ns` is on the clock of `time.monotonic_ns`.

        Raises:
            RerankIncomplete: a pair failed, was refused or came too late; no score of the pool is to be used.
        """
        asker = Asker(pool.tenant, self._reranker.revision, pool.query)
        cache = self._cache if pool.cached else None
        known = np.full(len(pool.passages), np.nan) if cache is None else cache.get(asker, pool.passages)
        pairs = await self._reranker.tokenize(pool.query, pool.passages)
        progress = Progress(pool.base, known, [pair.token_count for pair in pairs], aim)
        run = _Run(self._reranker, pairs, progress, deadline_ns, self._now_ns)
        try:
            await run.to_its_end()
        finally:
            fresh = np.flatnonzero(np.isnan(known) & ~np.isnan(progress.logits)).tolist()
            if cache is not None:
                cache.put(asker, [pool.passages[place] for place in fresh], progress.logits[fresh])
        return run.refined(int(np.count_nonzero(~np.isnan(known))))


@dataclass(frozen=True, slots=True)
class _Piece:
    """Pairs that are being scored."""

    places: list[int]
    tokens: int
    task: asyncio.Task[PairScores]


class _Run:
    """One pool on its way through the cross-encoder."""

    def __init__(
        self,
        reranker: AsyncReranker,
        pairs: Sequence[TokenizedText],
        progress: Progress,
        deadline_ns: int | None,
        now_ns: Callable[[], int],
    ) -> None:
        self._reranker = reranker
        self._pairs = pairs
        self._progress = progress
        self._deadline_ns = deadline_ns
        self._now_ns = now_ns
        self._begun_ns = now_ns()
        self._load = reranker.load()
        self._flying: deque[_Piece] = deque()
        self._landed: list[PairScores] = []

    async def to_its_end(self) -> None:
        """Scores until no piece comes next; pieces under way that are not needed any more are dropped."""
        try:
            while not self._progress.settled:
                self._launch()
                if not self._flying:
                    return
                await self._land()
        finally:
            for piece in self._flying:
                piece.task.cancel()
            await asyncio.gather(*(piece.task for piece in self._flying), return_exceptions=True)

    def refined(self, cached_count: int) -> Refined:
        """Returns what came out."""
        landed, progress = self._landed, self._progress
        return Refined(
            logits=progress.logits,
            stop=progress.stop,
            usable=progress.stop != "deadline" or progress.covered,
            pair_count=sum(scores.pair_count for scores in landed),
            cached_count=cached_count,
            token_count=self._landed_tokens(),
            queue_ns=landed[0].queue_ns if landed else 0,
            compute_ns=sum(scores.compute_ns for scores in landed),
        )

    def _launch(self) -> None:
        while len(self._flying) < (2 if self._progress.far else 1):
            places = self._progress.next_piece(self._load.workers, self._affordable_tokens())
            if not places:
                return
            pairs = [self._pairs[place] for place in places]
            task = asyncio.ensure_future(self._reranker.score_pairs(pairs, self._deadline_ns))
            self._flying.append(_Piece(places, sum(pair.token_count for pair in pairs), task))

    async def _land(self) -> None:
        piece = self._flying[0]
        try:
            scores = await piece.task
        except RerankIncomplete as error:
            done = sum(scores.pair_count for scores in self._landed) + error.scored_pairs
            tokens = self._landed_tokens() + error.scored_tokens
            raise RerankIncomplete(error.reason, done, len(self._pairs), tokens) from error
        self._flying.popleft()
        self._landed.append(scores)
        self._progress.note(piece.places, scores.logits)

    def _affordable_tokens(self) -> float:
        """Returns the tokens that can be begun now and still end in time; infinity without a deadline."""
        if self._deadline_ns is None:
            return float("inf")
        under_way = sum(piece.tokens for piece in self._flying)
        return (self._deadline_ns - self._now_ns()) / (self._pace_ns(under_way) * _SLACK) - under_way

    def _pace_ns(self, under_way_tokens: int) -> float:
        """Returns the wall time of a token: at first by what the queue shows, then as this run has seen it."""
        alone = max(1.0, self._reranker.load().ns_per_token) / self._load.workers
        if not self._landed:
            # Others have at most two pieces each in line, and the workers take turns between callers.
            return alone * (1.0 + self._load.queued_pairs / (2.0 * self._load.workers))
        # Pieces under way count as done: a pace that looks too slow would give up what could be had.
        return max(alone, (self._now_ns() - self._begun_ns) / (self._landed_tokens() + under_way_tokens))

    def _landed_tokens(self) -> int:
        return sum(scores.token_count for scores in self._landed)
