"""Late-interaction scores of passages: from stored token codes, or from codes computed now and kept by their text.

All passages get a score or none does: a list in which some have one cannot be ordered honestly.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encoders.errors import EncoderError, WorkExpired
from encoders.types import AsyncDenseEncoder, WorkClass
from indexers.errors import IndexUnavailable
from indexers.index import Index
from indexers.late import scores_of
from indexers.types import Passage
from rerank.errors import LateIncomplete, Reason
from retrieval.caching.token_codes import TokenCodes
from retrieval.scope import Scope
from retrieval.stages.embed import DenseQuery
from retrieval.trace import Trace
from retrieval.types import Thresholds


@dataclass(frozen=True, slots=True)
class LateQuery:
    """A query's token vectors, and where the passages' are looked for."""

    tokens: NDArray[np.float32]  # [tokens, codec.dim]
    encoder: AsyncDenseEncoder  # that made them
    index: Index
    scope: Scope
    use_cache: bool
    share_ns: int  # on the clock of time.monotonic_ns


@dataclass(frozen=True, slots=True)
class LateScores:
    """A score a passage, and how many of them needed a run of the encoder."""

    scores: NDArray[np.float64]  # [n], in about [-1, 1]
    computed: int


def skip_reason(thresholds: Thresholds, dense: DenseQuery | None) -> str:
    """Says why late interaction takes no part in a request; empty when it does."""
    if not thresholds.late:
        return "disabled"
    if dense is None:
        # The caller asked for BM25 alone; embedding the query after all would cost what that saves.
        return "sparse_mode"
    if dense.encoded.tokens is None:
        return "model_without_token_vectors"
    return "" if len(dense.encoded.tokens) else "query_without_tokens"


class LateInteraction:
    """Scores passages by the token vectors of the encoder that a collection is of."""

    def __init__(self, codes: TokenCodes) -> None:
        self._codes = codes

    async def score(self, query: LateQuery, passages: Sequence[Passage], trace: Trace) -> LateScores:
        """Scores all passages or none.

        Raises:
            LateIncomplete: the store failed, or token codes could not be computed in time.
        """
        scores = (await self._stored(query, passages)).astype(np.float64)
        missing = np.flatnonzero(np.isnan(scores)).tolist()
        if not missing:
            return LateScores(scores, 0)
        texts = [passages[place].embedding_text for place in missing]
        codes, computed = await self._computed(query, texts, trace)
        scores[missing] = await asyncio.to_thread(_compare, query, codes)
        return LateScores(scores, computed)

    async def _stored(self, query: LateQuery, passages: Sequence[Passage]) -> NDArray[np.float32]:
        try:
            async with asyncio.timeout((query.share_ns - time.monotonic_ns()) / 1e9):
                return await query.index.late_scores(query.tokens, passages)
        except TimeoutError as cause:
            raise LateIncomplete("deadline") from cause
        except IndexUnavailable as cause:
            raise LateIncomplete("unavailable") from cause

    async def _computed(
        self, query: LateQuery, texts: Sequence[str], trace: Trace
    ) -> tuple[list[NDArray[np.uint8]], int]:
        """Returns the codes of each text, and how many of them the encoder ran for."""
        found = {text: self._codes.get(query.scope.token_codes_key(text)) for text in texts} if query.use_cache else {}
        missing = [text for text in dict.fromkeys(texts) if found.get(text) is None]
        fresh = await self._encode(query, missing, trace) if missing else {}
        known = {text: codes for text, codes in found.items() if codes is not None} | fresh
        return [known[text] for text in texts], len(missing)

    async def _encode(self, query: LateQuery, texts: Sequence[str], trace: Trace) -> dict[str, NDArray[np.uint8]]:
        try:
            outcomes = await query.encoder.encode_passages(texts, WorkClass.ONLINE, query.share_ns)
        except EncoderError as cause:
            raise LateIncomplete("unavailable") from cause
        trace.clock.charge(
            queue_ns=min(outcome.queue_ns for outcome in outcomes),
            compute_ns=sum(outcome.compute_ns for outcome in outcomes),
        )
        codes: dict[str, NDArray[np.uint8]] = {}
        for text, outcome in zip(texts, outcomes, strict=True):
            if outcome.value is not None and outcome.value.codes is not None:
                codes[text] = outcome.value.codes
                if query.use_cache:
                    self._codes.put(query.scope.token_codes_key(text), outcome.value.codes)
        failure = next((outcome.error for outcome in outcomes if outcome.error is not None), None)
        if len(codes) < len(texts):
            reason: Reason = "deadline" if isinstance(failure, WorkExpired) else "unavailable"
            raise LateIncomplete(reason) from failure
        return codes


def _compare(query: LateQuery, codes: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
    codec = query.encoder.codec
    assert codec is not None
    return scores_of(query.tokens, codes, codec)
