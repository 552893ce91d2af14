"""Each question's candidates as the request path finds them, with the score before the cross-encoder and its logits."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench._common.beir import BeirSet, Question, Split, split_of
from bench._common.engines import Encoders
from bench._common.pipelines import KEY, RequestPath, index_documents, open_request_path
from bench._common.rerank.store import PairStore, ScoredPair
from bench._common.tables import say
from rerank.types import AsyncReranker
from retrieval.clock import StageClock
from retrieval.deadline import Deadline
from retrieval.settings import Settings
from retrieval.thresholds import Overrides, resolve
from retrieval.types import Hit, RetrieveRequest

_PATIENCE_S = 3600.0
_CONTEXT_TOKENS = 16  # contexts are not judged here


@dataclass(frozen=True, slots=True)
class RerankPool:
    """The candidates of one question, best first before the cross-encoder; arrays are [n], one entry a chunk."""

    set_name: str
    split: Split
    relevant: Mapping[str, int]
    documents: tuple[str, ...]  # of each chunk
    base: NDArray[np.float64]  # the score before the cross-encoder, falling
    logits: NDArray[np.float64]
    tokens: NDArray[np.int64]  # of each pair

    @property
    def grades(self) -> NDArray[np.int64]:
        """The grade of each chunk's document; 0 when it is not relevant."""
        return np.array([max(0, self.relevant.get(name, 0)) for name in self.documents], dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Gathered:
    """The pools of all sets, and what a token cost when they were scored."""

    pools: tuple[RerankPool, ...]
    unscored: tuple[RerankPool, ...]  # further questions, whose logits are all NaN
    ns_per_token: float  # of one worker
    late: bool  # whether late interaction took part in the score before


class Gatherer:
    """Retrieves candidates through the request path, and scores the pairs that no earlier run has scored."""

    def __init__(self, settings: Settings, encoders: Encoders, reranker: AsyncReranker, store: PairStore) -> None:
        self._settings = settings
        self._encoders = encoders
        self._reranker = reranker
        self._store = store
        self._spent: list[ScoredPair] = []
        self._late = False

    async def gather(self, sources: Sequence[BeirSet], scored: int) -> Gathered:
        """Returns the candidates of every question, those of the first `scored` of each set and split with logits."""
        pools: list[RerankPool] = []
        unscored: list[RerankPool] = []
        for source in sources:
            async with open_request_path(self._settings, self._encoders, self._encoders.cached) as path:
                await index_documents(path.catalog, source.documents, {}, self._encoders, self._encoders.cached)
                counts: Counter[Split] = Counter()
                for question in source.questions:
                    split = split_of(question.query_id)
                    counts[split] += 1
                    wanted = counts[split] <= scored
                    pool = await self._pool(path, source.name, question, score=wanted)
                    if len(pool.base):
                        (pools if wanted else unscored).append(pool)
            say(f"{source.name}: {sum(counts.values())} questions, {len(pools)} scored so far")
        ns_per_token = sum(pair.compute_ns for pair in self._spent) / max(1, sum(pair.tokens for pair in self._spent))
        return Gathered(tuple(pools), tuple(unscored), ns_per_token, self._late)

    async def _pool(self, path: RequestPath, name: str, question: Question, *, score: bool) -> RerankPool:
        hits = await self._retrieve(path, question)
        texts = [hit.passage.embedding_text for hit in hits]
        if score:
            pairs = await self._score(question.text, texts)
            self._spent += pairs
            logits, tokens = [pair.logit for pair in pairs], [pair.tokens for pair in pairs]
        else:
            tokenized = await self._reranker.tokenize(question.text, texts)
            logits, tokens = [math.nan] * len(texts), [pair.token_count for pair in tokenized]
        return RerankPool(
            set_name=name,
            split=split_of(question.query_id),
            relevant=question.relevant,
            documents=tuple(hit.passage.document_id for hit in hits),
            base=np.array([hit.score for hit in hits], dtype=np.float64),
            logits=np.array(logits, dtype=np.float64),
            tokens=np.array(tokens, dtype=np.int64),
        )

    async def _retrieve(self, path: RequestPath, question: Question) -> Sequence[Hit]:
        asked = Overrides(
            top_k=self._settings.rerank.depth, context_tokens=_CONTEXT_TOKENS, cache=False, min_score=-1.0
        )
        thresholds = resolve(self._settings, asked)
        request = RetrieveRequest(question.query_id, KEY.tenant, KEY.collection, question.text, None, thresholds)
        found = await path.pipeline.retrieve(request, StageClock(), Deadline.after(_PATIENCE_S))
        report = found.ledger.rerank
        self._late = self._late or (report is not None and report.late.passages > 0)
        return found.hits

    async def _score(self, query: str, texts: Sequence[str]) -> list[ScoredPair]:
        missing = [text for text in dict.fromkeys(texts) if self._store.get(query, text) is None]
        if missing:
            tokenized = await self._reranker.tokenize(query, missing)
            scores = await self._reranker.score_pairs(tokenized, None)
            pace = scores.compute_ns / max(1, scores.token_count)
            fresh = [
                ScoredPair(float(logit), pair.token_count, pace * pair.token_count)
                for logit, pair in zip(scores.logits, tokenized, strict=True)
            ]
            self._store.put(query, missing, fresh)
        found = (self._store.get(query, text) for text in texts)
        return [pair for pair in found if pair is not None]
