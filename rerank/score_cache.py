"""Logits that were computed before: a pair that is asked again costs no run of the model.

A logit depends on the model, the query and the passage's text, and on nothing else, so these are the key; the tenant is
in it too, because how fast an answer comes would otherwise tell one tenant what another has asked.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

_KEY_FORMAT = b"pair-logit-1"
_LOGIT = struct.Struct("<d")


@dataclass(frozen=True, slots=True)
class Asker:
    """Whose pairs these are, and of which model and query."""

    tenant: str
    revision: str  # of the cross-encoder; its limit on tokens is part of it
    query: str


class ScoreCache(Protocol):
    """Logits by (tenant, model revision, query, passage text)."""

    def get(self, asker: Asker, passages: Sequence[str]) -> NDArray[np.float64]:
        """Returns float64 [n]; NaN for a pair that is not known."""
        ...

    def put(self, asker: Asker, passages: Sequence[str], logits: NDArray[np.float64]) -> None:
        """Stores logits that the model gave for the passages, [n]."""
        ...


class ByteStore(Protocol):
    """What keeps bytes by key: `rerank.s3fifo.S3Fifo`, or any other cache of bytes."""

    def get(self, key: bytes) -> bytes | None:
        """Returns the value, or None when it is not there."""
        ...

    def put(self, key: bytes, value: bytes) -> None:
        """Stores the value; one that is too large is not stored."""
        ...


class StoredScores:
    """The `ScoreCache` over a store of bytes."""

    def __init__(self, store: ByteStore) -> None:
        self._store = store

    def get(self, asker: Asker, passages: Sequence[str]) -> NDArray[np.float64]:
        """Returns float64 [n]; NaN for a pair that is not known, or whose stored value is no logit."""
        return np.array([_logit(self._store.get(key)) for key in _keys(asker, passages)], dtype=np.float64)

    def put(self, asker: Asker, passages: Sequence[str], logits: NDArray[np.float64]) -> None:
        """Stores logits that the model gave for the passages, [n]."""
        for key, logit in zip(_keys(asker, passages), logits, strict=True):
            self._store.put(key, _LOGIT.pack(logit))


def _logit(stored: bytes | None) -> float:
    if stored is None or len(stored) != _LOGIT.size:
        return math.nan
    value: float = _LOGIT.unpack(stored)[0]
    return value if math.isfinite(value) else math.nan


def _keys(asker: Asker, passages: Sequence[str]) -> Iterator[bytes]:
    """Yields a hash a passage over all parts, each with its length, so that no two lists of parts are alike."""
    begun = blake2b(_KEY_FORMAT, digest_size=32)
    for part in (asker.tenant, asker.revision, asker.query):
        begun.update(_measured(part))
    for passage in passages:
        digest = begun.copy()
        digest.update(_measured(passage))
        yield digest.digest()


def _measured(part: str) -> bytes:
    content = part.encode("utf-8", "surrogatepass")
    return len(content).to_bytes(8, "little") + content
