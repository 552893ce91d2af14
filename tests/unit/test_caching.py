"""The cache in process, and the query embeddings in it."""

from __future__ import annotations

import numpy as np
import pytest

from indexers.types import Epoch
from retrieval.caching.embeddings import QueryEmbeddings, decode, encode
from retrieval.caching.memory import ENTRY_OVERHEAD_BYTES, MemoryCache
from retrieval.scope import Scope, hash_key

SCOPE = Scope("acme", "docs", Epoch(1, 2), "model", "r1")
VECTOR = np.array([0.6, 0.8], dtype=np.float32)


def test_cache_forgets_the_least_recently_used_first() -> None:
    """Reading a value keeps it; the bytes stay within the bound."""
    size = 1 + 10 + ENTRY_OVERHEAD_BYTES
    cache = MemoryCache("test", 2 * size)
    cache.put(b"a", b"0" * 10)
    cache.put(b"b", b"0" * 10)
    assert cache.get(b"a") is not None
    cache.put(b"c", b"0" * 10)
    assert cache.get(b"b") is None
    assert cache.get(b"a") is not None
    assert cache.used_bytes == 2 * size


def test_cache_replacing_and_invalidating_keep_the_count_right() -> None:
    """The same key counts once, and a forgotten one not at all."""
    cache = MemoryCache("test", 10_000)
    cache.put(b"a", b"0" * 10)
    cache.put(b"a", b"0" * 20)
    assert cache.used_bytes == 21 + ENTRY_OVERHEAD_BYTES
    cache.invalidate(b"a")
    cache.invalidate(b"a")
    assert cache.used_bytes == 0


def test_cache_value_above_the_capacity_is_not_stored() -> None:
    """One giant value does not push out everything else; capacity 0 stores nothing."""
    cache = MemoryCache("test", 500)
    cache.put(b"a", b"x")
    cache.put(b"b", b"x" * 1000)
    assert cache.get(b"a") == b"x"
    assert cache.get(b"b") is None


def test_embeddings_come_back_as_they_were() -> None:
    """The vector and its token count survive the codec."""
    embeddings = QueryEmbeddings(MemoryCache("query_embeddings", 10_000), 2)
    embeddings.put(SCOPE, "why", VECTOR, 3)
    found = embeddings.get(SCOPE, "why")
    assert found is not None
    assert found[0].tolist() == VECTOR.tolist()
    assert found[1] == 3


@pytest.mark.parametrize(
    "other",
    [
        Scope("other", "docs", Epoch(1, 2), "model", "r1"),
        Scope("acme", "docs", Epoch(1, 2), "model2", "r1"),
        Scope("acme", "docs", Epoch(1, 2), "model", "r2"),
    ],
)
def test_embeddings_of_another_tenant_or_model_are_not_found(other: Scope) -> None:
    """Everything that shapes the vector, and whose it is, is in the key."""
    embeddings = QueryEmbeddings(MemoryCache("query_embeddings", 10_000), 2)
    embeddings.put(SCOPE, "why", VECTOR, 3)
    assert embeddings.get(other, "why") is None


@pytest.mark.parametrize(
    "stored",
    [
        encode(VECTOR, 3)[:-3],
        encode(np.array([1.0], dtype=np.float32), 3),
        encode(np.zeros(2, dtype=np.float32), 3),
        encode(np.array([np.nan, 1.0], dtype=np.float32), 3),
        b"\x02" + encode(VECTOR, 3)[1:],
        b"abc",
    ],
)
def test_embeddings_damaged_values_are_misses(stored: bytes) -> None:
    """Cut, of another dimension, zero, NaN, of another format or garbage: a miss, never an error (case RED-06)."""
    assert decode(stored, 2) is None


def test_keys_do_not_collide_by_concatenation() -> None:
    """Each part is hashed with its length."""
    assert hash_key("p", ("ab", "c")) != hash_key("p", ("a", "bc"))
    assert SCOPE.result_key("search", ("x",)) != SCOPE.result_key("answer", ("x",))
    moved = Scope("acme", "docs", Epoch(1, 3), "model", "r1")
    assert SCOPE.result_key("search", ()) != moved.result_key("search", ())
