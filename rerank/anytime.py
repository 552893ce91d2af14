"""Scores a pool best first, in small pieces, and stops when more would change too little or would come too late.

Tokenize all pairs; take from the cache what was scored before; then, until `Progress` names no next piece, score a
piece of one pair a worker, note its logits, and plan anew with the pace that was measured so far.

A second piece under way, so that no worker waits for the other at a piece's end, was tried and brought nothing: 30
pairs of mixed lengths on two workers took 181 us a token with one piece at a time, 189 with two, and 174 when all were
handed over at once (medians of 16 interleaved runs).
"""

from __future__ import annotations

import time
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
            RerankIncomplete: a pair failed, was refused, or came too late for a result of scored pairs alone; no score
                of the pool is to be used.
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
        self._landed: list[PairScores] = []

    async def to_its_end(self) -> None:
        """Scores until no piece comes next."""
        while places := self._progress.next_piece(self._load.workers, self._affordable_tokens()):
            try:
                scores = await self._score([self._pairs[place] for place in places])
            except RerankIncomplete as error:
                if error.reason == "deadline" and self._progress.covered:
                    return  # the last piece came too late, but the result can be made without it
                raise
            self._landed.append(scores)
            self._progress.note(places, scores.logits)

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

    async def _score(self, piece: Sequence[TokenizedText]) -> PairScores:
        try:
            return await self._reranker.score_pairs(piece, self._deadline_ns)
        except RerankIncomplete as error:
            done = sum(scores.pair_count for scores in self._landed) + error.scored_pairs
            tokens = self._landed_tokens() + error.scored_tokens
            raise RerankIncomplete(error.reason, done, len(self._pairs), tokens) from error

    def _affordable_tokens(self) -> float:
        """Returns the tokens that can be begun now and still end in time; infinity without a deadline."""
        if self._deadline_ns is None:
            return float("inf")
        return (self._deadline_ns - self._now_ns()) / (self._pace_ns() * _SLACK)

    def _pace_ns(self) -> float:
        """Returns the wall time of a token: at first by what the queue shows, then as this run has seen it."""
        alone = max(1.0, self._reranker.load().ns_per_token) / self._load.workers
        if not self._landed:
            # Each of the others has one piece in line, and the workers take turns between callers.
            return alone * (1.0 + self._load.queued_pairs / self._load.workers)
        return max(alone, (self._now_ns() - self._begun_ns) / max(1, self._landed_tokens()))

    def _landed_tokens(self) -> int:
        return sum(scores.token_count for scores in self._landed)
