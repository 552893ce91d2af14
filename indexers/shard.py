"""Shard: a set of chunks that can be searched by vectors, under rows of the record; what an embedded index is made of.

A shard never changes. Writing gives a new one that shares almost everything with the old one, so a search always sees
one state and the serving state is swapped by one assignment.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from indexers.filters import Filter
from indexers.scoring import best
from indexers.types import Candidates, Passage, SearchQuery


@dataclass(frozen=True, slots=True)
class ShardHits:
    """What one search of a shard found: distinct rows, with both raw scores, in no particular order."""

    rows: NDArray[np.int64]  # [n], of the record
    ids: NDArray[np.uint8]  # [n, 16], the chunk ids' bytes
    dense_scores: NDArray[np.float32]  # [n], NaN when the branch was not asked
    sparse_scores: NDArray[np.float32]  # [n], NaN when the branch was not asked
    in_dense: NDArray[np.bool_]  # [n], whether the branch returned it
    in_sparse: NDArray[np.bool_]  # [n]

    def take(self, positions: NDArray[np.int64] | NDArray[np.bool_]) -> ShardHits:
        """Returns the hits at the positions."""
        return ShardHits(
            self.rows[positions],
            self.ids[positions],
            self.dense_scores[positions],
            self.sparse_scores[positions],
            self.in_dense[positions],
            self.in_sparse[positions],
        )


@dataclass(frozen=True, slots=True)
class ChunkKeys:
    """Names chunks, live or not; the ids guard against rows of another collection."""

    rows: NDArray[np.int64]  # [n], of the record
    ids: NDArray[np.uint8]  # [n, 16], the chunk ids' bytes


class Shard(Protocol):
    """A searchable set of chunks."""

    @property
    def chunk_count(self) -> int:
        """Chunks that a search can find."""
        ...

    def search(self, query: SearchQuery, filter: Filter | None) -> ShardHits:
        """Finds the best `query.limit` chunks of each branch; the filter holds for every branch."""
        ...

    def codes(self, keys: ChunkKeys) -> list[NDArray[np.uint8] | None]:
        """Returns the token codes of each chunk, uint8 [tokens * code_bytes]; None for one without, or not held."""
        ...

    def without(self, rows: NDArray[np.int64]) -> Shard:
        """Returns the shard without these rows; rows that it does not hold are passed over."""
        ...

    def close(self) -> None:
        """Lets go of files; no shard that shares them may be used afterwards."""
        ...


def keys_of(passages: Sequence[Passage]) -> ChunkKeys:
    """Returns the keys of fetched passages."""
    digits = "".join([passage.chunk_id for passage in passages]).replace("-", "")
    ids = np.frombuffer(bytes.fromhex(digits), dtype=np.uint8).reshape(-1, 16)
    return ChunkKeys(np.array([passage.row for passage in passages], dtype=np.int64), ids)


def held(
    keys: ChunkKeys, rows: NDArray[np.int64], ids: NDArray[np.uint8], dead: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns which of the keys are among the increasing rows and not dead, and at which positions there."""
    positions = np.minimum(np.searchsorted(rows, keys.rows), len(rows) - 1)
    same = (rows[positions] == keys.rows) & ~dead[positions]
    same &= (ids[positions] == keys.ids).all(axis=1)
    asked = np.flatnonzero(same)
    return asked, positions[asked]


def merge_hits(parts: Sequence[ShardHits], limit: int) -> ShardHits:
    """Returns what one shard with all the parts' chunks would have found: the best `limit` of each branch."""
    parts = [part for part in parts if len(part.rows)] or [no_hits()]
    if len(parts) == 1:
        return parts[0]
    merged = ShardHits(
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.ids for part in parts]),
        np.concatenate([part.dense_scores for part in parts]),
        np.concatenate([part.sparse_scores for part in parts]),
        _best_of([part.in_dense for part in parts], [part.dense_scores for part in parts], limit),
        _best_of([part.in_sparse for part in parts], [part.sparse_scores for part in parts], limit),
    )
    return merged.take(merged.in_dense | merged.in_sparse)


def candidates_of(hits: ShardHits) -> Candidates:
    """Turns hits into candidates: ranks each branch by score, the older row first among equals."""
    return Candidates(
        chunk_ids=_canonical(hits.ids),
        dense_scores=hits.dense_scores,
        sparse_scores=hits.sparse_scores,
        dense_ranks=_ranks(hits.in_dense, hits.dense_scores, hits.rows),
        sparse_ranks=_ranks(hits.in_sparse, hits.sparse_scores, hits.rows),
    )


def no_hits() -> ShardHits:
    """Returns what an empty shard finds."""
    nothing = np.empty(0, dtype=np.float32)
    no = np.empty(0, dtype=np.bool_)
    return ShardHits(np.empty(0, dtype=np.int64), np.empty((0, 16), dtype=np.uint8), nothing, nothing, no, no)


def _canonical(ids: NDArray[np.uint8]) -> tuple[str, ...]:
    """Writes ids as UUIDs do; `uuid.UUID` takes four times as long, and there are hundreds in a search."""
    digits = ids.tobytes().hex()
    ids_hex = [digits[start : start + 32] for start in range(0, len(digits), 32)]
    return tuple(f"{one[:8]}-{one[8:12]}-{one[12:16]}-{one[16:20]}-{one[20:]}" for one in ids_hex)


def _best_of(returned: list[NDArray[np.bool_]], scores: list[NDArray[np.float32]], limit: int) -> NDArray[np.bool_]:
    positions = np.flatnonzero(np.concatenate(returned))
    kept = np.zeros(sum(map(len, returned)), dtype=np.bool_)
    kept[positions[best(np.concatenate(scores)[positions], limit)]] = True
    return kept


def _ranks(returned: NDArray[np.bool_], scores: NDArray[np.float32], rows: NDArray[np.int64]) -> NDArray[np.int32]:
    ranks = np.full(len(rows), -1, dtype=np.int32)
    positions = np.flatnonzero(returned)
    order = np.lexsort((rows[positions], -scores[positions]))
    ranks[positions[order]] = np.arange(len(positions), dtype=np.int32)
    return ranks
