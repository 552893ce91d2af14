"""A cross-encoder without a model: logits as a test wants them, on a clock that only moves when pairs are scored."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import numpy as np

from encoders.types import TokenizedText
from rerank.errors import RerankIncomplete
from rerank.types import Load, PairScores

TOKENS = 10  # of every pair


class ManualClock:
    """Nanoseconds that stand still between steps."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns


class ScriptedReranker:
    """Gives each passage the logit of `logit_of`; passages in `bad`, or every call with a `failure`, fail.

    Passages in `late` come too late.

    A piece takes `true_ns_per_token` of the clock for each token and worker, and comes too late like a scheduler's.
    """

    model_id = "scripted"
    revision = "r1"

    def __init__(
        self,
        logit_of: Callable[[str], float],
        *,
        load: Load | None = None,
        true_ns_per_token: float = 0.0,
        failure: RerankIncomplete | None = None,
        bad: frozenset[str] = frozenset(),
        late: frozenset[str] = frozenset(),
    ) -> None:
        self.clock = ManualClock()
        self.pieces: list[list[str]] = []
        self._logit_of = logit_of
        self._load = load or Load(workers=2, ns_per_token=0.0, queued_pairs=0)
        self._true_ns_per_token = true_ns_per_token
        self._failure = failure
        self._bad = bad
        self._late = late
        self._texts: list[str] = []

    @property
    def scored(self) -> list[str]:
        """The passages of all pieces, in the order in which they were begun."""
        return [text for piece in self.pieces for text in piece]

    def load(self) -> Load:
        return self._load

    async def tokenize(self, query: str, passages: Sequence[str]) -> list[TokenizedText]:
        numbers = range(len(self._texts), len(self._texts) + len(passages))
        self._texts += passages
        return [_numbered(number) for number in numbers]

    async def score(self, query: str, passages: Sequence[str], deadline_ns: int | None) -> PairScores:
        return await self.score_pairs(await self.tokenize(query, passages), deadline_ns)

    async def score_pairs(self, pairs: Sequence[TokenizedText], deadline_ns: int | None) -> PairScores:
        if self._failure is not None:
            raise self._failure
        texts = [self._texts[int(pair.ids[0])] for pair in pairs]
        self.pieces.append(texts)
        await asyncio.sleep(0)
        self.clock.now_ns += int(self._true_ns_per_token * TOKENS * len(pairs) / self._load.workers)
        if deadline_ns is not None and self._true_ns_per_token and self.clock.now_ns > deadline_ns:
            raise RerankIncomplete("deadline", 0, len(pairs))
        if self._late.intersection(texts):
            raise RerankIncomplete("deadline", 0, len(pairs))
        if self._bad.intersection(texts):
            raise RerankIncomplete("unavailable", len(pairs) - 1, len(pairs), TOKENS * (len(pairs) - 1))
        logits = np.array([self._logit_of(text) for text in texts], dtype=np.float64)
        return PairScores(logits, TOKENS * len(pairs), 0, queue_ns=1, compute_ns=len(pairs))


def _numbered(number: int) -> TokenizedText:
    ids = np.zeros(TOKENS, dtype=np.int64)
    ids[0] = number
    return TokenizedText(ids, np.zeros(TOKENS, dtype=np.int64), TOKENS)
