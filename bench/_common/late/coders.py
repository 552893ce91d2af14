"""Codings of token vectors that the product has not, to compare its own with: 32-bit numbers and 8-bit numbers."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from encoders.late.codec import LevelCodec, max_similarities
from encoders.types import TokenCodec

# A number of a rotated unit vector is about normal; one in 16,000 lies further out than this and is cut.
_BYTE_RANGE = 4.0


class Coder(TokenCodec, Protocol):
    """A `TokenCodec` that writes too."""

    def encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Returns the codes uint8 [tokens, code_bytes] of vectors [tokens, dim] of unit length."""
        ...


class FloatCoder:
    """A `Coder` that loses nothing: four bytes a dimension."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.code_bytes = 4 * dim

    def encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Returns the bytes of the numbers."""
        return np.ascontiguousarray(vectors).view(np.uint8)

    def decode(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Returns the numbers again."""
        return codes.view(np.float32)

    def scores(
        self, query: NDArray[np.float32], codes: NDArray[np.uint8], ends: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Returns float32 [passages]; see `TokenCodec.scores`."""
        return max_similarities(query, codes, ends, self.decode)


class ByteCoder:
    """A `Coder` of one byte a dimension, on one scale for all of them."""

    def __init__(self, dim: int) -> None:
        self.dim = dim
        self.code_bytes = dim
        self._scale = np.float32(127.0 * np.sqrt(dim) / _BYTE_RANGE)

    def encode(self, vectors: NDArray[np.float32]) -> NDArray[np.uint8]:
        """Returns the nearest of 255 equal steps."""
        steps: NDArray[np.uint8] = np.clip(np.rint(vectors * self._scale), -127, 127).astype(np.int8).view(np.uint8)
        return steps

    def decode(self, codes: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Returns float32 [tokens, dim], about unit length."""
        numbers: NDArray[np.float32] = codes.view(np.int8).astype(np.float32) / self._scale
        return numbers

    def scores(
        self, query: NDArray[np.float32], codes: NDArray[np.uint8], ends: NDArray[np.int64]
    ) -> NDArray[np.float32]:
        """Returns float32 [passages]; see `TokenCodec.scores`."""
        return max_similarities(query, codes, ends, self.decode)


def coder_of(dim: int, bits: int) -> Coder:
    """Returns the coder of so many bits a dimension: 32, 8, or what the product has.

    Raises:
        ValueError: there is none.
    """
    if bits == 32:
        return FloatCoder(dim)
    return ByteCoder(dim) if bits == 8 else LevelCodec(dim, bits)
