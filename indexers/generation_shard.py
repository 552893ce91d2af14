"""The shard that a generation serves from: Edge says which chunks are best, the mapped arrays say how good they are."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from encoders.types import SparseVector
from indexers.edge import EdgeStore
from indexers.filters import Filter
from indexers.generation import EDGE
from indexers.generation_write import CODE_ENDS, CODES, DENSE, ENDS, IDS, ROWS, TERMS, WEIGHTS
from indexers.scoring import dense_scores, sparse_scores
from indexers.shard import ChunkKeys, ShardHits, held
from indexers.types import CollectionDefinition, SearchQuery


@dataclass(frozen=True, slots=True)
class GenerationArrays:
    """The mapped files of a generation, in row order; a position is a point id of its Edge shard."""

    rows: NDArray[np.int64]  # [n], increasing
    ids: NDArray[np.uint8]  # [n, 16]
    dense: NDArray[np.float32]  # [n, dim]
    ends: NDArray[np.int64]  # [n], where a chunk's terms end
    terms: NDArray[np.uint32]  # [entries]
    weights: NDArray[np.float32]  # [entries]
    code_ends: NDArray[np.int64]  # [n], where the bytes of a chunk's token codes end
    codes: NDArray[np.uint8]  # [bytes]

    def sparse_scores(self, positions: NDArray[np.int64], query: SparseVector) -> NDArray[np.float32]:
        """Returns the BM25 scores float32 [positions]."""
        ends = self.ends[positions]
        begins = np.where(positions > 0, self.ends[positions - 1], 0)
        sizes = ends - begins
        owners = np.repeat(np.arange(len(positions), dtype=np.int64), sizes)
        # Entry j of chunk i lies at begins[i] + j; `skipped` counts the entries of the chunks before it.
        skipped = np.cumsum(sizes) - sizes
        entries = np.arange(len(owners), dtype=np.int64) + (begins - skipped)[owners]
        scores = sparse_scores(owners, self.terms[entries], self.weights[entries], query, len(positions))
        return scores.astype(np.float32)


class GenerationShard:
    """An immutable generation, less the rows that later writes removed."""

    def __init__(self, store: EdgeStore, arrays: GenerationArrays, dead: NDArray[np.bool_]) -> None:
        self._store = store
        self._arrays = arrays
        self._dead = dead  # [n]
        self._dead_count = int(dead.sum())

    @property
    def chunk_count(self) -> int:
        """Chunks that a search can find."""
        return len(self._dead) - self._dead_count

    def search(self, query: SearchQuery, filter: Filter | None) -> ShardHits:
        """Finds the best of each branch; asks for more until enough of them are not removed."""
        asked = query.limit + min(self._dead_count, query.limit)
        while True:
            found = [self._alive(branch) for branch in self._store.search(query, filter, asked)]
            short = any(len(alive) < query.limit and returned >= asked for alive, returned in found)
            if not short or asked >= len(self._dead):
                return self._scored(query, found[0][0][: query.limit], found[1][0][: query.limit])
            asked = min(asked * 2, len(self._dead))

    def codes(self, keys: ChunkKeys) -> list[NDArray[np.uint8] | None]:
        """Returns the token codes of each chunk; None for one without, or not held. Reads nothing of the file yet."""
        arrays = self._arrays
        found: list[NDArray[np.uint8] | None] = [None] * len(keys.rows)
        asked, positions = held(keys, arrays.rows, arrays.ids, self._dead)
        ends = arrays.code_ends[positions]
        begins = np.where(positions > 0, arrays.code_ends[positions - 1], 0)
        for key, begin, end in zip(asked.tolist(), begins.tolist(), ends.tolist(), strict=True):
            found[key] = arrays.codes[begin:end] if end > begin else None
        return found

    def without(self, rows: NDArray[np.int64]) -> GenerationShard:
        """Returns the shard without these rows; shares its files."""
        if not len(rows):
            return self
        positions = np.minimum(np.searchsorted(self._arrays.rows, rows), len(self._dead) - 1)
        dead = self._dead.copy()
        dead[positions[self._arrays.rows[positions] == rows]] = True
        return GenerationShard(self._store, self._arrays, dead)

    def close(self) -> None:
        """Closes the Edge shard; the arrays are unmapped when nothing refers to them."""
        self._store.close()

    def _alive(self, positions: NDArray[np.int64]) -> tuple[NDArray[np.int64], int]:
        return positions[~self._dead[positions]], len(positions)

    def _scored(self, query: SearchQuery, from_dense: NDArray[np.int64], from_sparse: NDArray[np.int64]) -> ShardHits:
        positions = np.union1d(from_dense, from_sparse)
        unknown = np.full(len(positions), np.nan, dtype=np.float32)
        arrays = self._arrays
        return ShardHits(
            rows=arrays.rows[positions],
            ids=arrays.ids[positions],
            dense_scores=unknown if query.dense is None else dense_scores(arrays.dense[positions], query.dense),
            sparse_scores=unknown if query.sparse is None else arrays.sparse_scores(positions, query.sparse),
            in_dense=_marked(positions, from_dense),
            in_sparse=_marked(positions, from_sparse),
        )


def open_generation_shard(folder: Path, definition: CollectionDefinition, search_ef: int) -> GenerationShard:
    """Opens what `write_arrays_and_graph` wrote; maps the arrays and reads none of them.

    Raises:
        IndexUnavailable: the Edge shard does not open.
    """
    arrays = GenerationArrays(
        rows=_mapped(folder / ROWS, "<i8"),
        ids=_mapped(folder / IDS, "u1").reshape(-1, 16),
        dense=_mapped(folder / DENSE, "<f4").reshape(-1, definition.dim),
        ends=_mapped(folder / ENDS, "<i8"),
        terms=_mapped(folder / TERMS, "<u4"),
        weights=_mapped(folder / WEIGHTS, "<f4"),
        code_ends=_mapped(folder / CODE_ENDS, "<i8"),
        codes=_mapped(folder / CODES, "u1"),
    )
    store = EdgeStore(folder / EDGE, definition.dim, definition.fields, search_ef)
    return GenerationShard(store, arrays, np.zeros(len(arrays.rows), dtype=np.bool_))


def _marked(positions: NDArray[np.int64], found: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Tells which of the sorted positions were found; all that was found is among them."""
    marks = np.zeros(len(positions), dtype=np.bool_)
    marks[np.searchsorted(positions, found)] = True
    return marks


def _mapped(path: Path, dtype: str) -> NDArray[Any]:
    """Maps a file as a plain array, since indexing a `memmap` costs ten times as much; nothing cannot be mapped."""
    if not path.stat().st_size:
        return np.empty(0, dtype=dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r"))
