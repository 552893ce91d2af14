"""Token vectors in a few bits a dimension, and MaxSim on them.

The projection ends with a rotation, so all dimensions have about the same spread and one scale serves them all (the
idea of RaBitQ, Gao and Long, 2024). A dimension takes one of 2^bits levels, those that are optimal for a normal
distribution. Codes are read through a table with one entry for each value of a byte: one look-up gives two or four
numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

# The positive half of the best levels for a standard normal variable (Max, Quantizing for minimum distortion, 1960).
_NORMAL_LEVELS = {
    2: (0.4528, 1.510),
    4: (0.1284, 0.3881, 0.6568, 0.9424, 1.256, 1.618, 2.069, 2.733),
}

# OpenBLAS computes a matrix product of up to so many multiplications without other threads.
_SERIAL_PRODUCTS = 262_144


class LevelCodec:
    """A `TokenCodec` of 4 or 2 bits a dimension."""

    def __init__(self, dim: int, bits: int) -> None:
        """Codes of `dim * bits / 8` bytes.

        Raises:
            ValueError: the bits are not 2 or 4, or do not fill whole bytes.
        """
        if bits not in _NORMAL_LEVELS or dim < 1 or dim * bits % 8:
            raise ValueError(f"a code has 2 or 4 bits a dimension, in whole bytes; not {bits} for {dim} dimensions")
        self.dim = dim
        self.bits = bits
        self.code_bytes = dim * bits // 8
        half = np.array(_NORMAL_LEVELS[bits]) / np.sqrt(dim)
        levels = np.concatenate((-half[::-1], half))
        self._bounds = ((levels[1:] + levels[:-1]) / 2).astype(np.float32)
        self._shifts = np.arange(8 // bits, dtype=np.uint8) * np.uint8(bits)
        # The first number of a byte is in its lowest bits, and the last factor of a product runs fastest.
        entries = np.array([entry[::-1] for entry in product(levels, repeat=8 // bits)], dtype=np.float32)
        # Taking one wide item is many times faster than taking a row of narrow ones.
        self._table = entries.view(np.float64 if bits == 4 else np.complex128).ravel()  # [256]

    def encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Returns the codes uint8 [tokens, code_bytes] of vectors [tokens, dim] of unit length."""
        levels = np.searchsorted(self._bounds, vectors).astype(np.uint8)
        parts = levels.reshape(len(vectors), self.code_bytes, len(self._shifts)) << self._shifts
        codes: NDArray[np.uint8] = np.bitwise_or.reduce(parts, axis=2)
        return codes

    def decode(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Returns float32 [tokens, dim] of codes [tokens, code_bytes], about unit length."""
        return np.take(self._table, codes).view(np.float32).reshape(len(codes), self.dim)

    def scores(
        self, query: NDArray[np.float32], codes: NDArray[np.uint8], ends: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Returns float32 [passages]; see `TokenCodec.scores`."""
        return max_similarities(query, codes, ends, self.decode)


def max_similarities(
    query: NDArray[np.float32],
    tokens: NDArray[Any],
    ends: NDArray[np.int64],
    vectors_of: Callable[[NDArray[Any]], NDArray[np.float32]] = lambda tokens: tokens,
) -> NDArray[np.float32]:
    """Returns, for each passage, the sum over the query's tokens of the best dot product among the passage's tokens.

    `query` is [q, dim]; `tokens` [n, ...] are the passages' one after another, passage i ends before `ends[i]`, and
    `vectors_of` makes vectors [tokens, dim] of them. A passage without tokens scores 0.

    A piece of one passage at a time: a product's last bits depend on its number of rows, and a score may not depend on
    its neighbours; small products stay on the calling thread, where the threads of a large one wait for each other when
    the cores are busy; and what is decoded stays in the cache.
    """
    scores = np.zeros(len(ends), dtype=np.float32)
    starts = np.concatenate((np.zeros(1, dtype=ends.dtype), ends[:-1]))
    filled = np.flatnonzero(ends > starts)
    if len(filled) and len(query):
        similarities = np.empty((len(tokens), len(query)), dtype=np.float32)
        columns, rows = np.ascontiguousarray(query.T), max(1, _SERIAL_PRODUCTS // query.size)
        for start, end in zip(starts[filled].tolist(), ends[filled].tolist(), strict=True):
            for first in range(start, end, rows):
                piece = slice(first, min(first + rows, end))
                np.matmul(vectors_of(tokens[piece]), columns, out=similarities[piece])
        scores[filled] = np.maximum.reduceat(similarities, starts[filled], axis=0).sum(axis=1)
    return scores
