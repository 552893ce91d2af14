"""Query embeddings by exact text: the codec, and a cache that never gives a vector it cannot vouch for."""

from __future__ import annotations

import struct

import numpy as np
from numpy.typing import NDArray

from retrieval.caching.memory import Cache
from retrieval.scope import Scope

FORMAT = 1
_HEADER = struct.Struct("<BII")  # format, token count, dim
_KIND = "query"


class QueryEmbeddings:
    """The query vectors of one encoder, cached."""

    def __init__(self, cache: Cache, dim: int) -> None:
        self._cache = cache
        self._dim = dim

    @property
    def name(self) -> str:
        """What ledgers call the cache."""
        return self._cache.name

    def get(self, scope: Scope, query: str) -> tuple[NDArray[np.float32], int] | None:
        """Returns the vector [dim] and its token count; None when it is not there or is damaged."""
        stored = self._cache.get(scope.embedding_key(_KIND, query))
        return None if stored is None else decode(stored, self._dim)

    def put(self, scope: Scope, query: str, vector: NDArray[np.float32], token_count: int) -> None:
        """Stores a vector that the encoder gave without an error."""
        self._cache.put(scope.embedding_key(_KIND, query), encode(vector, token_count))


def encode(vector: NDArray[np.float32], token_count: int) -> bytes:
    """Returns the vector as bytes with a format number."""
    return _HEADER.pack(FORMAT, token_count, len(vector)) + vector.astype("<f4").tobytes()


def decode(stored: bytes, dim: int) -> tuple[NDArray[np.float32], int] | None:
    """Returns the vector and its token count; None unless whole, of this format, finite and of unit length."""
    if len(stored) != _HEADER.size + 4 * dim:
        return None
    version, token_count, stored_dim = _HEADER.unpack_from(stored)
    if version != FORMAT or stored_dim != dim:
        return None
    vector = np.frombuffer(stored, dtype="<f4", offset=_HEADER.size)
    length = float(np.dot(vector, vector))
    return (vector, token_count) if abs(length - 1.0) < 1e-3 else None
