"""A set's questions with their best hybrid candidates and the token states of both."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench._common.beir import BeirSet, Question
from bench._common.engines import Encoders
from bench._common.fusions import by_bound, convex_scores
from bench._common.late.states import TokenStates, passage_states, states_of
from bench._common.pools import Pool, gather_pools, prepare_set
from encoders.dense import OnnxDenseEncoder
from encoders.types import TextKind, TokenizedText
from retrieval.settings import Settings


@dataclass(frozen=True, slots=True)
class Candidates:
    """A question's best chunks by hybrid search; arrays are [n], one entry a chunk."""

    pool: Pool
    first_stage: NDArray[np.float64]  # the fused score
    passages: NDArray[np.int64]  # places in the set's `TokenStates`


@dataclass(frozen=True, slots=True)
class Asked:
    """A question as the model read it, with its candidates."""

    candidates: Candidates
    item: TokenizedText
    states: NDArray[np.float32]  # [tokens, states]


@dataclass(frozen=True, slots=True)
class LateSet:
    """A set's questions, and the token states of all passages that are a candidate of one."""

    name: str
    questions: tuple[Asked, ...]
    passages: TokenStates


async def gather_set(
    source: BeirSet, encoders: Encoders, bare: OnnxDenseEncoder, weights: NDArray[np.float32], settings: Settings
) -> LateSet:
    """Searches for each question, and runs the bare encoder on questions and candidates."""
    searchable = await prepare_set(source, encoders.cached, encoders.chunker)
    # A pool names documents; with places for names it says which chunks these are.
    places = replace(searchable, documents=tuple(map(str, range(len(searchable.documents)))))
    pools = await gather_pools(places, source.questions, encoders.cached, settings.retrieval.candidates)
    found = [best_of(pool, searchable.documents, settings) for pool in pools]
    chunks = np.unique(np.concatenate([one.passages for one in found]))
    texts = [searchable.texts[chunk] for chunk in chunks]
    found = [replace(one, passages=np.searchsorted(chunks, one.passages)) for one in found]
    return await asyncio.to_thread(_with_states, source, found, texts, bare, weights)


def best_of(pool: Pool, documents: Sequence[str], settings: Settings) -> Candidates:
    """Returns the best of a pool that names chunks, as many as are reranked; `documents` are those of all chunks."""
    fused = convex_scores(pool, by_bound, np.array([settings.retrieval.dense_weight]))[0]
    ranks = np.where(pool.dense_ranks < 0, np.iinfo(np.int32).max, pool.dense_ranks)
    best = np.lexsort((ranks, -fused))[: settings.rerank.depth]
    chunks = np.array(pool.documents, dtype=np.int64)[best]
    kept = replace(
        pool,
        documents=tuple(documents[chunk] for chunk in chunks),
        dense=pool.dense[best],
        sparse=pool.sparse[best],
        dense_ranks=pool.dense_ranks[best],
        sparse_ranks=pool.sparse_ranks[best],
    )
    return Candidates(kept, fused[best], chunks)


def _with_states(
    source: BeirSet,
    found: Sequence[Candidates],
    texts: Sequence[str],
    bare: OnnxDenseEncoder,
    weights: NDArray[np.float32],
) -> LateSet:
    items = bare.tokenize(_texts(source.questions), TextKind.QUERY)
    asked = [Asked(*parts) for parts in zip(found, items, states_of(bare, items), strict=True)]
    return LateSet(source.name, tuple(asked), passage_states(bare, bare.tokenize(texts, TextKind.PASSAGE), weights))


def _texts(questions: Sequence[Question]) -> list[str]:
    return [question.text for question in questions]
