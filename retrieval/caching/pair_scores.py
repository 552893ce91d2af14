"""Logits of the cross-encoder by pair of texts: a pair that is asked again costs no run of the model.

The tenant is in the key too, because how fast an answer comes would otherwise tell one tenant what another has asked.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rerank.score_cache import Asker
from retrieval.caching.keys import CacheKey
from retrieval.caching.shared import SharedTier
from retrieval.caching.tiered import Tiered
from retrieval.scope import pair_keys

_LOGIT = struct.Struct("<Bd")
_FORMAT = 1
_FLOAT_BYTES = 24


class PairScores:
    """The `ScoreCache` of the cross-encoder."""

    def __init__(self, cache: Tiered[float], tier: SharedTier | None = None) -> None:
        self._cache = cache
        self._tier = tier

    @property
    def cache(self) -> Tiered[float]:
        """The logits by key."""
        return self._cache

    async def load(self, asker: Asker, passages: Sequence[str]) -> bool:
        """Brings what only the shared tier knows into this process; returns whether that tier could be asked."""
        if self._tier is None:
            return True
        # `get` looks them up in a moment, and counts.
        keys = [key for key in _keys(asker, passages) if self._cache.peek(key) is None]
        if not keys:
            return True
        found = await self._tier.get_many(keys)
        for key, stored in zip(keys, found.values, strict=True):
            self._cache.take(key, stored)
        return found.available

    def get(self, asker: Asker, passages: Sequence[str]) -> NDArray[np.float64]:
        """Returns float64 [n]; NaN for a pair that is not known in this process."""
        known = [self._cache.get(key) for key in _keys(asker, passages)]
        return np.array([math.nan if logit is None else logit for logit in known], dtype=np.float64)

    def put(self, asker: Asker, passages: Sequence[str], logits: NDArray[np.float64]) -> None:
        """Stores logits that the model gave for the passages, [n]."""
        for key, logit in zip(_keys(asker, passages), logits.tolist(), strict=True):
            self._cache.put(key, logit)


def _keys(asker: Asker, passages: Sequence[str]) -> list[CacheKey]:
    return pair_keys(asker.tenant, asker.revision, asker.query, passages)


def size_of(logit: float) -> int:
    """Returns the bytes that a logit takes."""
    return _FLOAT_BYTES


def encode(logit: float) -> bytes:
    """Writes a logit as bytes."""
    return _LOGIT.pack(_FORMAT, logit)


def decode(stored: bytes) -> float | None:
    """Reads what `encode` wrote; None for anything else."""
    if len(stored) != _LOGIT.size:
        return None
    form, logit = _LOGIT.unpack(stored)
    return logit if form == _FORMAT and math.isfinite(logit) else None
