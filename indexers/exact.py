"""The exact shard: brute force over blocks of arrays. The delta of an embedded index, and the oracle of the tests.

A write makes a new block; neighbouring blocks of similar size are joined, so there are never more than a few. Blocks
are made in the writer's thread, and a search only reads them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import numpy as np
from numpy.typing import NDArray

from encoders.term_statistics import TermStatistics
from indexers.columns import Columns
from indexers.filters import Filter
from indexers.postings import Postings, build_postings, count_statistics, join_postings
from indexers.record_read import StoredChunk
from indexers.scoring import best, dense_scores
from indexers.shard import ChunkKeys, ShardHits, held, merge_hits, no_hits
from indexers.types import FieldType, Metadata, SearchQuery

_MAX_BLOCK_ROWS = 65_536


class ExactShard:
    """Chunks in memory, searched by comparing all of them."""

    def __init__(
        self, fields: Mapping[str, FieldType], statistics: TermStatistics, blocks: tuple[_Block, ...] = ()
    ) -> None:
        self._fields = fields
        self._statistics = statistics
        self._blocks = blocks

    @property
    def chunk_count(self) -> int:
        """Chunks that a search can find."""
        return sum(int(block.alive.sum()) for block in self._blocks)

    def plus(self, chunks: Sequence[StoredChunk]) -> ExactShard:
        """Returns the shard with these chunks added."""
        if not chunks:
            return self
        blocks = [*self._blocks, _build_block(chunks, self._fields, self._statistics)]
        while len(blocks) > 1 and _joinable(blocks[-2], blocks[-1]):
            blocks[-2:] = [_join_blocks(blocks[-2], blocks[-1], self._fields, self._statistics)]
        return ExactShard(self._fields, self._statistics, tuple(blocks))

    def without(self, rows: NDArray[np.int64]) -> ExactShard:
        """Returns the shard without these rows."""
        if not len(rows):
            return self
        blocks = (replace(block, alive=block.alive & ~np.isin(block.rows, rows)) for block in self._blocks)
        return ExactShard(self._fields, self._statistics, tuple(block for block in blocks if block.alive.any()))

    def weighed(self, statistics: TermStatistics) -> ExactShard:
        """Returns the shard with its term counts weighed by other statistics."""
        blocks = (replace(block, postings=block.postings.weighed(statistics)) for block in self._blocks)
        return ExactShard(self._fields, statistics, tuple(blocks))

    def count_statistics(self) -> TermStatistics:
        """Counts the shard as a collection of its own."""
        postings, alive = [block.postings for block in self._blocks], [block.alive for block in self._blocks]
        return count_statistics(postings, alive, self._statistics)

    def search(self, query: SearchQuery, filter: Filter | None) -> ShardHits:
        """Finds the best of each branch exactly."""
        hits = [block.search(query, filter) for block in self._blocks]
        return merge_hits(hits, query.limit) if hits else no_hits()

    def codes(self, keys: ChunkKeys) -> list[NDArray[np.uint8] | None]:
        """Returns the token codes of each chunk; None for one without, or not held."""
        found: list[NDArray[np.uint8] | None] = [None] * len(keys.rows)
        for block in self._blocks:
            asked, positions = held(keys, block.rows, block.ids, ~block.alive)
            for key, position in zip(asked.tolist(), positions.tolist(), strict=True):
                found[key] = block.codes[position]
        return found

    def close(self) -> None:
        """Does nothing; there are no files."""


@dataclass(frozen=True, slots=True)
class _Block:
    rows: NDArray[np.int64]  # [n]
    ids: NDArray[np.uint8]  # [n, 16]
    dense: NDArray[np.float32]  # [n, dim]
    postings: Postings
    documents: tuple[Metadata, ...]
    document_of: NDArray[np.int64]  # [n], positions in `documents`
    columns: Columns
    codes: tuple[NDArray[np.uint8] | None, ...]  # [n], each [tokens * code_bytes]; joining blocks does not copy them
    alive: NDArray[np.bool_]  # [n]

    def search(self, query: SearchQuery, filter: Filter | None) -> ShardHits:
        eligible = self.alive if filter is None else self.alive & self.columns.mask(filter)[self.document_of]
        in_dense, in_sparse = np.zeros((2, len(self.rows)), dtype=np.bool_)
        dense = sparse = np.full(len(self.rows), np.nan, dtype=np.float32)
        if query.dense is not None:
            in_dense[self._nearest(query.dense, eligible, query.limit)] = True
        if query.sparse is not None:
            sparse = self.postings.scores(query.sparse).astype(np.float32)
            matching = np.flatnonzero(eligible & (sparse > 0))
            in_sparse[matching[best(sparse[matching], query.limit)]] = True
        found = np.flatnonzero(in_dense | in_sparse)
        scores = dense[found] if query.dense is None else dense_scores(self.dense[found], query.dense)
        return ShardHits(self.rows[found], self.ids[found], scores, sparse[found], in_dense[found], in_sparse[found])

    def _nearest(self, query: NDArray[np.float32], eligible: NDArray[np.bool_], limit: int) -> NDArray[np.int64]:
        positions = np.flatnonzero(eligible)
        few = len(positions) * 4 < len(eligible)
        scores = dense_scores(self.dense[positions], query) if few else dense_scores(self.dense, query)[positions]
        return positions[best(scores, limit)]


def _build_block(chunks: Sequence[StoredChunk], fields: Mapping[str, FieldType], statistics: TermStatistics) -> _Block:
    position: dict[int, int] = {}
    documents: list[Metadata] = []
    for chunk in chunks:
        if chunk.document_row not in position:
            position[chunk.document_row] = len(documents)
            documents.append(chunk.metadata)
    return _Block(
        rows=np.array([chunk.row for chunk in chunks], dtype=np.int64),
        ids=np.frombuffer(b"".join(chunk.chunk_id for chunk in chunks), dtype=np.uint8).reshape(-1, 16),
        dense=np.stack([chunk.dense for chunk in chunks]).astype(np.float32, copy=False),
        postings=build_postings([chunk.terms for chunk in chunks], statistics),
        documents=tuple(documents),
        document_of=np.array([position[chunk.document_row] for chunk in chunks], dtype=np.int64),
        columns=Columns(documents, fields),
        codes=tuple(chunk.codes for chunk in chunks),
        alive=np.ones(len(chunks), dtype=np.bool_),
    )


def _joinable(older: _Block, newer: _Block) -> bool:
    return len(older.rows) <= 2 * len(newer.rows) and len(older.rows) + len(newer.rows) <= _MAX_BLOCK_ROWS


def _join_blocks(older: _Block, newer: _Block, fields: Mapping[str, FieldType], statistics: TermStatistics) -> _Block:
    kept = (older.alive, newer.alive)
    document_of = np.concatenate([older.document_of, newer.document_of + len(older.documents)])[np.concatenate(kept)]
    used, document_of = np.unique(document_of, return_inverse=True)
    both = older.documents + newer.documents
    documents = tuple(both[one] for one in used)
    return _Block(
        rows=np.concatenate([older.rows[older.alive], newer.rows[newer.alive]]),
        ids=np.concatenate([older.ids[older.alive], newer.ids[newer.alive]]),
        dense=np.concatenate([older.dense[older.alive], newer.dense[newer.alive]]),
        postings=join_postings((older.postings, newer.postings), kept, statistics),
        documents=documents,
        document_of=document_of.astype(np.int64),
        columns=Columns(documents, fields),
        codes=tuple(compress(older.codes + newer.codes, np.concatenate(kept).tolist())),
        alive=np.ones(int(older.alive.sum() + newer.alive.sum()), dtype=np.bool_),
    )
