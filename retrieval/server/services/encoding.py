"""Serves `EncodingService`: the encoders by themselves.

Calls of more than a few texts are bulk work, so that they never hold up a question. One text and many go the same way.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc.aio
import numpy as np
from numpy.typing import NDArray

from encoders.errors import EncoderError, InputTooLong, SchedulerStopped, WorkExpired
from encoders.types import AsyncDenseEncoder, Outcome, TextKind, TokenCounter, WorkClass
from headrace.v1 import encoding_pb2, encoding_pb2_grpc
from rerank.calibrate import probability, rank_from_logits
from rerank.errors import RerankIncomplete
from rerank.types import AsyncReranker, PairScores
from retrieval.errors import InvalidRequest, RerankerMissing
from retrieval.server.calls import current_call
from retrieval.server.convert.texts import checked_query, checked_texts

MAX_ENCODED_BYTES = 1024 * 1024
MAX_COUNTED_BYTES = 4 * 1024 * 1024
ONLINE_TEXTS = 8
_KINDS: Mapping[int, TextKind] = {
    encoding_pb2.TEXT_KIND_QUERY: TextKind.QUERY,
    encoding_pb2.TEXT_KIND_PASSAGE: TextKind.PASSAGE,
}


@dataclass(frozen=True, slots=True)
class Counters:
    """Who counts tokens: the encoder's tokenizer, and the one that context budgets are counted with."""

    encoder: TokenCounter
    context: TokenCounter


class EncodingService(encoding_pb2_grpc.EncodingServiceServicer):
    """Converts, calls, converts."""

    def __init__(self, encoder: AsyncDenseEncoder, reranker: AsyncReranker | None, counters: Counters) -> None:
        self._encoder = encoder
        self._reranker = reranker
        self._counters = counters

    async def Embed(  # noqa: N802 - the wire's name
        self, request: encoding_pb2.EmbedRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> encoding_pb2.EmbedResponse:
        """Turns texts into vectors; a text that fails does so alone."""
        texts = checked_texts(request.texts, "texts", MAX_ENCODED_BYTES)
        kind = _kind(request.kind)
        if not request.truncate:
            await self._refuse_too_long(texts, kind)
        work_class = WorkClass.ONLINE if len(texts) <= ONLINE_TEXTS else WorkClass.BULK
        outcomes = await self._encoder.encode(texts, kind, work_class, current_call().deadline.at_ns)
        for outcome in outcomes:
            if isinstance(outcome.error, WorkExpired | SchedulerStopped):
                raise outcome.error
        embeddings = await asyncio.to_thread(lambda: [_embedding(outcome) for outcome in outcomes])
        return encoding_pb2.EmbedResponse(embeddings=embeddings, model=self._encoder.model_id, dim=self._encoder.dim)

    async def Rerank(  # noqa: N802 - the wire's name
        self, request: encoding_pb2.RerankRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> encoding_pb2.RerankResponse:
        """Scores passages against a query, best first."""
        query = checked_query(request.query)
        passages = checked_texts(request.passages, "passages", MAX_ENCODED_BYTES)
        keep = request.top_k if request.HasField("top_k") else len(passages)
        if keep < 1:
            raise InvalidRequest("top_k", "at least 1", "top_k is 0; it must be at least 1, or left out for all")
        if self._reranker is None:
            raise RerankerMissing
        scores = await self._score(self._reranker, query, passages)
        return encoding_pb2.RerankResponse(
            results=_ranked(scores, keep), model=self._reranker.model_id, tokens=scores.token_count
        )

    async def CountTokens(  # noqa: N802 - the wire's name
        self, request: encoding_pb2.CountTokensRequest, context: grpc.aio.ServicerContext[Any, Any]
    ) -> encoding_pb2.CountTokensResponse:
        """Counts the tokens of each text; an empty one has none."""
        texts = checked_texts(request.texts, "texts", MAX_COUNTED_BYTES, visible=False)
        counter = self._counter(request.tokenizer)
        counts = await asyncio.to_thread(lambda: [counter.count(text) for text in texts])
        return encoding_pb2.CountTokensResponse(counts=counts, tokenizer=counter.name)

    async def _score(self, reranker: AsyncReranker, query: str, passages: list[str]) -> PairScores:
        try:
            return await reranker.score(query, passages, current_call().deadline.at_ns)
        except RerankIncomplete as error:
            if isinstance(error.__cause__, EncoderError):  # overload and lateness have statuses of their own
                raise error.__cause__ from None
            raise

    def _counter(self, kind: int) -> TokenCounter:
        if kind in (encoding_pb2.TOKENIZER_KIND_UNSPECIFIED, encoding_pb2.TOKENIZER_KIND_ENCODER):
            return self._counters.encoder
        if kind == encoding_pb2.TOKENIZER_KIND_CONTEXT:
            return self._counters.context
        bound = "one of the declared values"
        raise InvalidRequest("tokenizer", bound, f"tokenizer is {kind}; it must be {bound}")

    async def _refuse_too_long(self, texts: list[str], kind: TextKind) -> None:
        tokenized = await asyncio.to_thread(self._encoder.tokenize, texts, kind)
        for position, text in enumerate(tokenized):
            if text.truncated:
                raise InputTooLong(position, text.full_token_count, self._encoder.max_tokens)


def _kind(number: int) -> TextKind:
    kind = _KINDS.get(number)
    if kind is None:
        raise InvalidRequest(
            "kind", "query or passage", f"kind is {number}; say whether the texts are queries or passages"
        )
    return kind


def _embedding(outcome: Outcome[NDArray[np.float32]]) -> encoding_pb2.Embedding:
    if outcome.value is None:
        return encoding_pb2.Embedding(token_count=outcome.token_count, error=str(outcome.error))
    return encoding_pb2.Embedding(
        vector=outcome.value.tolist(), token_count=outcome.token_count, truncated=outcome.truncated
    )


def _ranked(scores: PairScores, keep: int) -> Sequence[encoding_pb2.RankedPassage]:
    places = range(len(scores.logits))
    order = rank_from_logits(scores.logits, np.array(places), [str(place) for place in places])[:keep]
    opinions = probability(scores.logits)
    return [
        encoding_pb2.RankedPassage(index=int(place), score=float(opinions[place]), logit=float(scores.logits[place]))
        for place in order
    ]
