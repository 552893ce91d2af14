"""Codes of token vectors by passage text, for collections that do not store them: computed once, kept while used."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from retrieval.caching.memory import Cache
from retrieval.scope import Scope

_FORMAT = b"\x01"
_KIND = "token codes"


class TokenCodes:
    """The token codes of one encoder, cached. A key holds the tenant, the encoder's revision and the text."""

    def __init__(self, cache: Cache, code_bytes: int) -> None:
        """`code_bytes` is what a token takes; 0 for an encoder without token vectors, whose codes nobody asks for."""
        self._cache = cache
        self._code_bytes = code_bytes

    def get(self, scope: Scope, text: str) -> NDArray[np.uint8] | None:
        """Returns uint8 [tokens, code_bytes]; None when they are not there or are damaged."""
        stored = self._cache.get(scope.embedding_key(_KIND, text))
        if stored is None or not stored.startswith(_FORMAT) or (len(stored) - len(_FORMAT)) % self._code_bytes:
            return None
        return np.frombuffer(stored, dtype=np.uint8, offset=len(_FORMAT)).reshape(-1, self._code_bytes)

    def put(self, scope: Scope, text: str, codes: NDArray[np.uint8]) -> None:
        """Stores codes [tokens, code_bytes] that the encoder gave without an error."""
        self._cache.put(scope.embedding_key(_KIND, text), _FORMAT + codes.tobytes())
