"""Each question's candidates with both branches' raw scores, gathered once, so that any fusion can be tried on them.

Chunks, texts, vectors and BM25 weights are made by the functions that the indexer and the exact index use; only the
storage is left out. `bench.quality` gives the same figures through the whole request path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bench._common.beir import BeirSet, Question
from bench._common.tables import say
from encoders.bm25 import Bm25Statistics, collect_statistics, query_vector, upper_bound
from encoders.terms import count_terms
from encoders.types import AsyncDenseEncoder, TextKind, WorkClass
from indexers.chunking import Chunker
from indexers.postings import Postings, build_postings
from indexers.scoring import best, dense_scores

_ENCODED_AT_ONCE = 256
_SEARCHED_AT_ONCE = 64


@dataclass(frozen=True, slots=True)
class Pool:
    """What both branches found for one question; arrays are [n], one entry a chunk."""

    query_id: str
    relevant: Mapping[str, int]
    documents: tuple[str, ...]  # of each chunk
    dense: NDArray[np.float32]
    sparse: NDArray[np.float32]
    dense_ranks: NDArray[np.int32]  # from 0; -1 when the branch did not return it
    sparse_ranks: NDArray[np.int32]
    sparse_bound: float  # BM25 that no document can reach


@dataclass(frozen=True, slots=True)
class SearchableSet:
    """A set's chunks as arrays."""

    documents: tuple[str, ...]  # [chunks]
    texts: tuple[str, ...]  # [chunks], as they were embedded
    vectors: NDArray[np.float32]  # [chunks, dim]
    postings: Postings
    statistics: Bm25Statistics


async def prepare_set(source: BeirSet, encoder: AsyncDenseEncoder, chunker: Chunker) -> SearchableSet:
    """Cuts, embeds and counts the documents of a set."""
    owners, texts = [], []
    for document in source.documents:
        for chunk in chunker.chunk(document):
            owners.append(document.document_id)
            texts.append(chunk.embedding_text)
    vectors = await encode_all(encoder, texts, TextKind.PASSAGE)
    counts = [count_terms(text) for text in texts]
    statistics = collect_statistics(counts)
    return SearchableSet(tuple(owners), tuple(texts), vectors, build_postings(counts, statistics), statistics)


async def gather_pools(
    searchable: SearchableSet, questions: Sequence[Question], encoder: AsyncDenseEncoder, limit: int
) -> list[Pool]:
    """Searches both branches for each question, `limit` candidates each."""
    vectors = await encode_all(encoder, [question.text for question in questions], TextKind.QUERY)
    pools: list[Pool] = []
    for start in range(0, len(questions), _SEARCHED_AT_ONCE):
        block = slice(start, start + _SEARCHED_AT_ONCE)
        # One product of matrices is many times faster than one of a matrix and a vector for each question.
        cosines = vectors[block] @ searchable.vectors.T
        for question, vector, dense in zip(questions[block], vectors[block], cosines, strict=True):
            pools.append(_gather(searchable, question, (vector, dense), limit))
    return pools


async def encode_all(encoder: AsyncDenseEncoder, texts: Sequence[str], kind: TextKind) -> NDArray[np.float32]:
    """Returns the vectors [n, dim] of all texts.

    Raises:
        RuntimeError: a text could not be encoded.
    """
    vectors = np.empty((len(texts), encoder.dim), dtype=np.float32)
    for start, part in _parts(texts):
        for place, outcome in enumerate(await encoder.encode(part, kind, WorkClass.BULK, None), start):
            if outcome.value is None:
                raise RuntimeError(f"text {place} was not encoded; leave it out of the set") from outcome.error
            vectors[place] = outcome.value
        if start and start % (_ENCODED_AT_ONCE * 20) == 0:
            say(f"  {start:,} of {len(texts):,} texts encoded")
    return vectors


def _parts(texts: Sequence[str]) -> Iterator[tuple[int, Sequence[str]]]:
    for start in range(0, len(texts), _ENCODED_AT_ONCE):
        yield start, texts[start : start + _ENCODED_AT_ONCE]


def _gather(
    searchable: SearchableSet, question: Question, query: tuple[NDArray[np.float32], NDArray[np.float32]], limit: int
) -> Pool:
    """Makes the pool of a question from its vector [dim] and its cosines with all chunks."""
    vector, dense = query
    weights = query_vector(count_terms(question.text), searchable.statistics)
    sparse = searchable.postings.scores(weights).astype(np.float32)
    matching = np.flatnonzero(sparse > 0)
    dense_found = _ordered(best(dense, limit), dense)
    sparse_found = _ordered(matching[best(sparse[matching], limit)], sparse)
    found = np.union1d(dense_found, sparse_found)
    return Pool(
        query_id=question.query_id,
        relevant=question.relevant,
        documents=tuple(searchable.documents[chunk] for chunk in found),
        dense=dense_scores(searchable.vectors[found], vector),
        sparse=sparse[found],
        dense_ranks=_ranks(found, dense_found),
        sparse_ranks=_ranks(found, sparse_found),
        sparse_bound=upper_bound(weights),
    )


def _ordered(positions: NDArray[np.int64], scores: NDArray[np.float32]) -> NDArray[np.int64]:
    return positions[np.lexsort((positions, -scores[positions]))]


def _ranks(found: NDArray[np.int64], ordered: NDArray[np.int64]) -> NDArray[np.int32]:
    ranks = np.full(len(found), -1, dtype=np.int32)
    ranks[np.searchsorted(found, ordered)] = np.arange(len(ordered), dtype=np.int32)
    return ranks
