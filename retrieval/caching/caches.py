"""The caches of one server, and how they are opened."""

from __future__ import annotations

from dataclasses import dataclass

from retrieval.answers.cache import AnswerCache
from retrieval.caching.embeddings import QueryEmbeddings
from retrieval.caching.pair_scores import PairScores
from retrieval.caching.shared import SharedTier
from retrieval.caching.tiered import Tiered
from retrieval.caching.token_codes import TokenCodes
from retrieval.conversation.summaries import Summaries
from retrieval.types import Found


@dataclass(frozen=True, slots=True)
class Caches:
    """What was computed before."""

    shared: SharedTier
    embeddings: QueryEmbeddings
    token_codes: TokenCodes
    pair_scores: PairScores
    results: Tiered[Found]
    answers: AnswerCache
    summaries: Summaries  # of conversations; in this process alone
