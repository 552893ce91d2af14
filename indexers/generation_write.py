"""Writes the searchable part of a generation: flat arrays that are mapped for scoring, and the Edge shard beside them.

All arrays are in row order; a chunk's position in them is its point id in the shard. The arrays repeat the vectors that
the shard holds, since scores are computed from them: 100 rows cost 0.01 ms mapped, 0.15 ms through the shard.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from encoders.term_statistics import TermStatistics, document_vector
from indexers.edge import EdgeBuilder, EdgePoint
from indexers.generation import EDGE
from indexers.options import GraphShape
from indexers.payload import payload_of
from indexers.record_read import StoredChunk
from indexers.types import CollectionDefinition

ROWS = "rows.i64"
IDS = "ids.u8"
DENSE = "dense.f32"
ENDS = "sparse_ends.i64"
TERMS = "sparse_terms.u32"
WEIGHTS = "sparse_weights.f32"
CODE_ENDS = "code_ends.i64"
CODES = "codes.u8"


def write_arrays_and_graph(
    folder: Path,
    batches: Iterable[Sequence[StoredChunk]],
    definition: CollectionDefinition,
    statistics: TermStatistics,
    graph: GraphShape,
) -> None:
    """Streams chunks in row order into the arrays and the shard, then builds the shard's graph."""
    builder = EdgeBuilder(folder / EDGE, definition.dim, definition.fields, graph)
    with ExitStack() as stack:
        arrays = _Arrays(folder, stack)
        position = 0
        for batch in batches:
            points = []
            for chunk in batch:
                sparse = document_vector(chunk.terms, statistics)
                arrays.append(chunk, sparse.indices, sparse.values)
                payload = payload_of(chunk.metadata, definition.fields)
                points.append(EdgePoint(position, chunk.dense, sparse, payload))
                position += 1
            builder.add(points)
    builder.finish()


class _Arrays:
    """The flat files, open for appending."""

    def __init__(self, folder: Path, stack: ExitStack) -> None:
        def opened(name: str) -> BinaryIO:
            return stack.enter_context((folder / name).open("wb"))

        self._rows, self._ids, self._dense = opened(ROWS), opened(IDS), opened(DENSE)
        self._ends, self._terms, self._weights = opened(ENDS), opened(TERMS), opened(WEIGHTS)
        self._code_ends, self._codes = opened(CODE_ENDS), opened(CODES)
        self._end = self._code_end = 0

    def append(self, chunk: StoredChunk, terms: NDArray[np.uint32], weights: NDArray[np.float32]) -> None:
        self._end += len(terms)
        self._rows.write(np.int64(chunk.row).astype("<i8").tobytes())
        self._ids.write(chunk.chunk_id)
        self._dense.write(chunk.dense.astype("<f4", copy=False).tobytes())
        self._ends.write(np.int64(self._end).astype("<i8").tobytes())
        self._terms.write(terms.astype("<u4", copy=False).tobytes())
        self._weights.write(weights.astype("<f4", copy=False).tobytes())
        if chunk.codes is not None:
            self._code_end += self._codes.write(chunk.codes.tobytes())
        self._code_ends.write(np.int64(self._code_end).astype("<i8").tobytes())
