"""Each question's candidates as the request path finds them, with the score before the cross-encoder and its logits."""

from __future__ import annotations

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
from retrieval.types import RetrieveRequest

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
    ns_per_token: float  # of one worker
    late: bool  # whether late interaction took part in the score before


async def gather(
    settings: Settings, sources: Sequence[BeirSet], encoders: Encoders, reranker: AsyncReranker, store: PairStore
) -> Gathered:
    """Retrieves the candidates of every question, and scores the pairs that no earlier run has scored."""
    pools: list[RerankPool] = []
    spent: list[tuple[float, int]] = []
    late = False
    for source in sources:
        async with open_request_path(settings, encoders, encoders.cached) as path:
            await index_documents(path.catalog, source.documents, {}, encoders, encoders.cached)
            for number, question in enumerate(source.questions, 1):
                documents, texts, base, with_late = await _candidates(path, settings, question)
                if not texts:
                    continue
                pairs = await _score(reranker, store, question.text, texts)
                late = late or with_late
                spent += [(pair.compute_ns, pair.tokens) for pair in pairs]
                logits, tokens = np.array([pair.logit for pair in pairs]), np.array([pair.tokens for pair in pairs])
                split = split_of(question.query_id)
                pools.append(RerankPool(source.name, split, question.relevant, documents, base, logits, tokens))
                if number % 20 == 0:
                    say(f"  {source.name}: {number} of {len(source.questions)} questions")
    total_ns, total_tokens = (sum(column) for column in zip(*spent, strict=True))
    return Gathered(tuple(pools), total_ns / total_tokens, late)


async def _candidates(
    path: RequestPath, settings: Settings, question: Question
) -> tuple[tuple[str, ...], list[str], NDArray[np.float64], bool]:
    depth = settings.rerank.depth
    thresholds = resolve(settings, Overrides(top_k=depth, context_tokens=_CONTEXT_TOKENS, cache=False, min_score=-1.0))
    request = RetrieveRequest(question.query_id, KEY.tenant, KEY.collection, question.text, None, thresholds)
    found = await path.pipeline.retrieve(request, StageClock(), Deadline.after(_PATIENCE_S))
    documents = tuple(hit.passage.document_id for hit in found.hits)
    late = found.ledger.rerank is not None and found.ledger.rerank.late.passages > 0
    return documents, [hit.passage.embedding_text for hit in found.hits], np.array([h.score for h in found.hits]), late


async def _score(reranker: AsyncReranker, store: PairStore, query: str, texts: Sequence[str]) -> list[ScoredPair]:
    missing = [text for text in dict.fromkeys(texts) if store.get(query, text) is None]
    if missing:
        tokenized = await reranker.tokenize(query, missing)
        scores = await reranker.score_pairs(tokenized, None)
        pace = scores.compute_ns / max(1, scores.token_count)
        fresh = [
            ScoredPair(float(logit), pair.token_count, pace * pair.token_count)
            for logit, pair in zip(scores.logits, tokenized, strict=True)
        ]
        store.put(query, missing, fresh)
    found = (store.get(query, text) for text in texts)
    return [pair for pair in found if pair is not None]
