"""Query embeddings by exact text: the codec, and a cache that never gives a vector it cannot vouch for."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from encoders.types import AsyncDenseEncoder, EncodedQuery
from retrieval.caching.tiered import Tiered

_FORMAT = 3
_HEADER = struct.Struct("<BIIII")  # format, token count, dim, rows and dim of the token vectors
_OBJECT_BYTES = 400  # two arrays and what holds them, by tracemalloc on CPython 3.11


@dataclass(frozen=True, slots=True)
class EmbeddingShape:
    """What the vectors of an encoder look like."""

    dim: int
    token_dim: int = 0  # of a token vector; 0 for an encoder without them


def shape_of(encoder: AsyncDenseEncoder) -> EmbeddingShape:
    """Returns the shape of an encoder's vectors."""
    return EmbeddingShape(encoder.dim, encoder.codec.dim if encoder.codec else 0)


@dataclass(frozen=True, slots=True)
class CachedQuery:
    """The vectors of a query that was not truncated."""

    encoded: EncodedQuery
    token_count: int

    @property
    def shape(self) -> EmbeddingShape:
        """What the vectors look like."""
        tokens = self.encoded.tokens
        return EmbeddingShape(len(self.encoded.vector), 0 if tokens is None else tokens.shape[1])


QueryEmbeddings: TypeAlias = Tiered[CachedQuery]


def size_of(query: CachedQuery) -> int:
    """Returns the bytes that the vectors take."""
    tokens = query.encoded.tokens
    return _OBJECT_BYTES + query.encoded.vector.nbytes + (0 if tokens is None else tokens.nbytes)


def encode(query: CachedQuery) -> bytes:
    """Writes the vectors as bytes, behind a header that says what they are."""
    vector, tokens = query.encoded.vector, query.encoded.tokens
    rows, token_dim = (0, 0) if tokens is None else tokens.shape
    header = _HEADER.pack(_FORMAT, query.token_count, len(vector), rows, token_dim)
    parts = [header, vector.astype("<f4").tobytes()]
    if tokens is not None:
        parts.append(tokens.astype("<f4").tobytes())
    return b"".join(parts)


def decode(stored: bytes) -> CachedQuery | None:
    """Reads what `encode` wrote; None for anything that is not exactly that (RED-06)."""
    if len(stored) < _HEADER.size:
        return None
    form, token_count, dim, rows, token_dim = _HEADER.unpack_from(stored)
    if form != _FORMAT or not dim:
        return None
    if len(stored) != _HEADER.size + 4 * (dim + rows * token_dim):
        return None
    numbers: NDArray[np.float32] = np.frombuffer(stored, dtype="<f4", offset=_HEADER.size).astype(np.float32)
    vector = numbers[:dim]
    if not np.isfinite(numbers).all() or abs(float(vector @ vector) - 1.0) > 1e-3:
        return None
    tokens = numbers[dim:].reshape(rows, token_dim) if token_dim else None
    return CachedQuery(EncodedQuery(vector, tokens), token_count)
