"""What retrieval finds for each query of a set, as the service would: the same chunks, scores and fusion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from encoders.bm25 import Bm25Statistics, collect_statistics, query_vector, upper_bound
from encoders.terms import count_terms
from encoders.types import TextKind
from indexers.chunking import Chunker
from indexers.postings import Postings, build_postings
from indexers.scoring import best, dense_scores
from indexers.types import Document
from rerank.training.examples import Example, SourceText
from rerank.training.pools import BaseWeights, Pool, PoolSet
from retrieval.fuse import convex
from retrieval.training.encoding import BulkEncoder, TokenStates
from retrieval.training.late import TokenWeights, max_similarity, token_weights


@dataclass(frozen=True, slots=True)
class Depths:
    """How the first stage searches."""

    dense_weight: float = 0.65
    branch: int = 100  # candidates of each branch
    pool: int = 20  # of the fused list
    base: BaseWeights = field(default_factory=BaseWeights)


@dataclass(frozen=True, slots=True)
class SearchablePassages:
    """The chunks of a set, and what they are found by."""

    passages: tuple[str, ...]  # as they are embedded and reranked
    text_ids: tuple[str, ...]
    vectors: NDArray[np.float32]  # [passages, dim]
    postings: Postings
    statistics: Bm25Statistics
    token_weights: TokenWeights
    of_text: Mapping[str, tuple[int, ...]]  # text id -> its passages


@dataclass(frozen=True, slots=True)
class _Found:
    """A query's candidates before late interaction: positions, best first, and their fused scores."""

    positions: NDArray[np.int64]
    hybrid: NDArray[np.float64]
    found_count: int


def prepare(texts: Sequence[SourceText], chunker: Chunker, encoder: BulkEncoder) -> SearchablePassages:
    """Cuts, embeds and counts texts."""
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
    return SearchablePassages(
        passages=tuple(passages),
        text_ids=tuple(owners),
        vectors=encoder.vectors(passages, TextKind.PASSAGE),
        postings=build_postings(counts, statistics),
        statistics=statistics,
        token_weights=token_weights(encoder.tokenize(passages)),
        of_text=of_text,
    )


def make_pools(
    name: str, examples: Sequence[Example], searchable: SearchablePassages, encoder: BulkEncoder, depths: Depths
) -> PoolSet:
    """Returns a pool for each query; relevant passages that were not found stand behind those that were."""
    queries = [example.query for example in examples]
    vectors = encoder.vectors(queries, TextKind.QUERY)
    found = [_search(searchable, example, vector, depths) for example, vector in zip(examples, vectors, strict=True)]
    needed = sorted({int(position) for one in found for position in one.positions})
    states = encoder.states([searchable.passages[position] for position in needed], TextKind.PASSAGE)
    by_position = dict(zip(needed, states, strict=True))
    pools = [
        _pool(searchable, example, one, _late(searchable, query, one, by_position), depths)
        for example, one, query in zip(examples, found, encoder.states(queries, TextKind.QUERY), strict=True)
    ]
    return PoolSet(name, {f"p{position}": searchable.passages[position] for position in needed}, tuple(pools))


def _search(searchable: SearchablePassages, example: Example, vector: NDArray[np.float32], depths: Depths) -> _Found:
    dense = dense_scores(searchable.vectors, vector)
    weights = query_vector(count_terms(example.query), searchable.statistics)
    sparse = searchable.postings.scores(weights).astype(np.float32)
    matching = np.flatnonzero(sparse > 0)
    candidates = np.union1d(best(dense, depths.branch), matching[best(sparse[matching], depths.branch)])
    fused = convex(dense, sparse, depths.dense_weight, upper_bound(weights))
    kept = candidates[np.lexsort((candidates, -fused[candidates]))][: depths.pool]
    relevant = {place for text_id in example.relevant for place in searchable.of_text.get(text_id, ())}
    missed = np.array(sorted(relevant.difference(kept.tolist())), dtype=np.int64)
    positions = np.concatenate([kept, missed])
    return _Found(positions, fused[positions], len(kept))


def _late(
    searchable: SearchablePassages, query: TokenStates, found: _Found, states: Mapping[int, TokenStates]
) -> NDArray[np.float64]:
    return np.array(
        [max_similarity(query, states[int(place)], searchable.token_weights) for place in found.positions],
        dtype=np.float64,
    )


def _pool(
    searchable: SearchablePassages, example: Example, found: _Found, late: NDArray[np.float64], depths: Depths
) -> Pool:
    count = found.found_count
    base = depths.base.hybrid * found.hybrid + depths.base.late * late
    order = np.concatenate([np.argsort(-base[:count], kind="stable"), np.arange(count, len(base))])
    positions = found.positions[order]
    return Pool(
        query_id=example.query_id,
        query=example.query,
        relevant=example.relevant,
        passage_ids=tuple(f"p{position}" for position in positions),
        text_ids=tuple(searchable.text_ids[position] for position in positions),
        hybrid=found.hybrid[order],
        late=late[order],
        found_count=count,
    )
