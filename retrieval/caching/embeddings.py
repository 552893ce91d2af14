"""Query embeddings by exact text: the codec, and a cache that never gives a vector it cannot vouch for."""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from encoders.types import EncodedQuery
from retrieval.caching.memory import Cache
from retrieval.scope import Scope

FORMAT = 2
_HEADER = struct.Struct("<BIIII")  # format, token count, dim, rows and dim of the token vectors
_KIND = "query"


@dataclass(frozen=True, slots=True)
class EmbeddingShape:
    """What the vectors of an encoder look like."""

    dim: int
    token_dim: int = 0  # of a token vector; 0 for an encoder without them


class QueryEmbeddings:
    """The query vectors of one encoder, cached."""

    def __init__(self, cache: Cache, shape: EmbeddingShape) -> None:
        self._cache = cache
        self._shape = shape

    @property
    def name(self) -> str:
        """What ledgers call the cache."""
        return self._cache.name

    def get(self, scope: Scope, query: str) -> tuple[EncodedQuery, int] | None:
        """Returns the vectors and the query's token count; None when they are not there or are damaged."""
        stored = self._cache.get(scope.embedding_key(_KIND, query))
        return None if stored is None else decode(stored, self._shape)

    def put(self, scope: Scope, query: str, encoded: EncodedQuery, token_count: int) -> None:
        """Stores vectors that the encoder gave without an error."""
        self._cache.put(scope.embedding_key(_KIND, query), encode(encoded, token_count))


def encode(encoded: EncodedQuery, token_count: int) -> bytes:
    """Returns the vectors as bytes with a format number."""
    tokens = np.empty((0, 0), dtype=np.float32) if encoded.tokens is None else encoded.tokens
    header = _HEADER.pack(FORMAT, token_count, len(encoded.vector), *tokens.shape)
    return header + encoded.vector.astype("<f4").tobytes() + tokens.astype("<f4").tobytes()


def decode(stored: bytes, shape: EmbeddingShape) -> tuple[EncodedQuery, int] | None:
    """Returns the vectors and the token count; None unless whole, of this format and shape, finite and unit length."""
    if len(stored) < _HEADER.size:
        return None
    version, token_count, dim, rows, token_dim = _HEADER.unpack_from(stored)
    if (version, dim, token_dim) != (FORMAT, shape.dim, shape.token_dim):
        return None
    if len(stored) != _HEADER.size + 4 * (dim + rows * token_dim):
        return None
    numbers = np.frombuffer(stored, dtype="<f4", offset=_HEADER.size)
    vector, tokens = numbers[:dim], numbers[dim:].reshape(rows, token_dim)
    if not (abs(float(vector @ vector) - 1.0) < 1e-3 and _finite(tokens)):
        return None
    return EncodedQuery(vector, tokens if token_dim else None), token_count


def _finite(numbers: NDArray[np.float32]) -> bool:
    return bool(np.isfinite(numbers).all())
