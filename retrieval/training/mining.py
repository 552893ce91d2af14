"""What retrieval finds for each query of a set, as the service would: the same chunks, scores and weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encoders.bm25 import Bm25Statistics, collect_statistics, query_vector, upper_bound
from encoders.terms import count_terms
from encoders.types import EncodedQuery, TokenCodec
from indexers.chunking import Chunker
from indexers.late import scores_of
from indexers.postings import Postings, build_postings
from indexers.scoring import best, dense_scores
from indexers.types import Document
from rerank.calibrate import Mixture
from rerank.training.examples import Example, SourceText
from rerank.training.pools import Pool, PoolSet
from retrieval.fuse import convex
from retrieval.training.encoding import BulkEncoder


@dataclass(frozen=True, slots=True)
class FirstStage:
    """How candidates are found and ordered before the cross-encoder, as the settings say."""

    dense_weight: float  # of the cosine in the fused score
    branch: int  # candidates of each branch
    mixture: Mixture  # with no weight for the cross-encoder
    pool: int = 20  # of the fused list


@dataclass(frozen=True, slots=True)
class SearchablePassages:
    """The chunks of a set, and what they are found by."""

    passages: tuple[str, ...]  # as they are embedded and reranked
    text_ids: tuple[str, ...]
    vectors: NDArray[np.float32]  # [passages, dim]
    codes: tuple[NDArray[np.uint8] | None, ...]  # of each passage's token vectors
    postings: Postings
    statistics: Bm25Statistics
    of_text: Mapping[str, tuple[int, ...]]  # text id -> its passages


@dataclass(frozen=True, slots=True)
class _Found:
    """A query's candidates before late interaction: positions, best first, and their fused scores."""

    positions: NDArray[np.int64]
    hybrid: NDArray[np.float64]
    found_count: int


def prepare(texts: Sequence[SourceText], chunker: Chunker, encoder: BulkEncoder) -> SearchablePassages:
    """Cuts, encodes and counts texts."""
    passages, owners = [], []
    for text in texts:
        for chunk in chunker.chunk(Document(text.text_id, text.title, text.text)):
            passages.append(chunk.embedding_text)
            owners.append(text.text_id)
    counts = [count_terms(passage) for passage in passages]
    statistics = collect_statistics(counts)
    of_text: dict[str, tuple[int, ...]] = {}
    for position, owner in enumerate(owners):
        of_text[owner] = (*of_text.get(owner, ()), position)
    encoded = encoder.passages(passages)
    return SearchablePassages(
        passages=tuple(passages),
        text_ids=tuple(owners),
        vectors=encoder.matrix(encoded),
        codes=tuple(one.codes for one in encoded),
        postings=build_postings(counts, statistics),
        statistics=statistics,
        of_text=of_text,
    )


def make_pools(
    name: str, examples: Sequence[Example], searchable: SearchablePassages, encoder: BulkEncoder, stage: FirstStage
) -> PoolSet:
    """Returns a pool for each query; relevant passages that were not found stand behind those that were."""
    pools, named = [], set()
    for example, query in zip(examples, encoder.queries([one.query for one in examples]), strict=True):
        found = _search(searchable, example, query.vector, stage)
        late = _late(encoder.codec, [searchable.codes[place] for place in found.positions], query)
        pools.append(_pool(searchable, example, found, late, stage))
        named.update(found.positions.tolist())
    return PoolSet(name, {f"p{place}": searchable.passages[place] for place in sorted(named)}, tuple(pools))


def _search(searchable: SearchablePassages, example: Example, vector: NDArray[np.float32], stage: FirstStage) -> _Found:
    dense = dense_scores(searchable.vectors, vector)
    weights = query_vector(count_terms(example.query), searchable.statistics)
    sparse = searchable.postings.scores(weights).astype(np.float32)
    matching = np.flatnonzero(sparse > 0)
    candidates = np.union1d(best(dense, stage.branch), matching[best(sparse[matching], stage.branch)])
    fused = convex(dense, sparse, stage.dense_weight, upper_bound(weights))
    kept = candidates[np.lexsort((candidates, -fused[candidates]))][: stage.pool]
    relevant = {place for text_id in example.relevant for place in searchable.of_text.get(text_id, ())}
    missed = np.array(sorted(relevant.difference(kept.tolist())), dtype=np.int64)
    positions = np.concatenate([kept, missed])
    return _Found(positions, fused[positions], len(kept))


def _late(
    codec: TokenCodec | None, codes: Sequence[NDArray[np.uint8] | None], query: EncodedQuery
) -> NDArray[np.float64] | None:
    """Returns a score a passage; None when late interaction takes no part, as in the service."""
    if codec is None or query.tokens is None or not len(query.tokens) or not codes:
        return None
    scores = scores_of(query.tokens, codes, codec).astype(np.float64)
    return None if np.isnan(scores).any() else scores


def _pool(
    searchable: SearchablePassages,
    example: Example,
    found: _Found,
    late: NDArray[np.float64] | None,
    stage: FirstStage,
) -> Pool:
    count = found.found_count
    base = stage.mixture.before(found.hybrid, late)
    order = np.concatenate([np.argsort(-base[:count], kind="stable"), np.arange(count, len(base))])
    positions = found.positions[order]
    return Pool(
        query_id=example.query_id,
        query=example.query,
        relevant=example.relevant,
        passage_ids=tuple(f"p{position}" for position in positions),
        text_ids=tuple(searchable.text_ids[position] for position in positions),
        hybrid=found.hybrid[order],
        late=None if late is None else late[order],
        found_count=count,
    )
