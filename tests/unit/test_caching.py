"""The cache in process, and the query embeddings in it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from encoders.types import EncodedQuery
from indexers.types import Epoch
from retrieval.caching.embeddings import EmbeddingShape, QueryEmbeddings, decode, encode
from retrieval.caching.memory import ENTRY_OVERHEAD_BYTES, MemoryCache
from retrieval.scope import Scope, hash_key

SCOPE = Scope("acme", "docs", Epoch(1, 2), "model", "r1")
VECTOR = np.array([0.6, 0.8], dtype=np.float32)
TOKENS = np.array([[0.1, 0.2, 0.3], [0.0, 0.4, 0.1]], dtype=np.float32)
ENCODED = EncodedQuery(VECTOR, TOKENS)
SHAPE = EmbeddingShape(2, 3)


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
    embeddings = QueryEmbeddings(MemoryCache("query_embeddings", 10_000), SHAPE)
    embeddings.put(SCOPE, "why", ENCODED, 3)
    found = embeddings.get(SCOPE, "why")
    assert found is not None
    assert found[0].vector.tolist() == VECTOR.tolist()
    assert found[0].tokens is not None
    assert found[0].tokens.tolist() == TOKENS.tolist()
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
    embeddings = QueryEmbeddings(MemoryCache("query_embeddings", 10_000), SHAPE)
    embeddings.put(SCOPE, "why", ENCODED, 3)
    assert embeddings.get(other, "why") is None


def _changed(vector: list[float], tokens: NDArray[np.float32] | None = TOKENS) -> bytes:
    return encode(EncodedQuery(np.array(vector, dtype=np.float32), tokens), 3)


@pytest.mark.parametrize(
    "stored",
    [
        encode(ENCODED, 3)[:-3],
        encode(ENCODED, 3)[:9],
        encode(ENCODED, 3) + b"\x00" * 12,
        _changed([1.0]),
        _changed([0.0, 0.0]),
        _changed([np.nan, 1.0]),
        _changed([0.6, 0.8], None),
        _changed([0.6, 0.8], np.full_like(TOKENS, np.inf)),
        b"\x01" + encode(ENCODED, 3)[1:],
        b"abc",
    ],
)
def test_embeddings_damaged_values_are_misses(stored: bytes) -> None:
    """Cut, too long, of another shape, zero, NaN or garbage: a miss, never an error (case RED-06)."""
    assert decode(stored, SHAPE) is None


def test_embeddings_of_an_encoder_without_token_vectors_come_back_without() -> None:
    """No token vectors are told apart from a question without any token that counts."""
    bare, empty = EncodedQuery(VECTOR, None), EncodedQuery(VECTOR, TOKENS[:0])
    found, none = decode(encode(empty, 3), SHAPE), decode(encode(bare, 3), EmbeddingShape(2))
    assert found is not None
    assert found[0].tokens is not None
    assert len(found[0].tokens) == 0
    assert none is not None
    assert none[0].tokens is None


def test_keys_do_not_collide_by_concatenation() -> None:
    """Each part is hashed with its length."""
    assert hash_key("p", ("ab", "c")) != hash_key("p", ("a", "bc"))
    assert SCOPE.result_key("search", ("x",)) != SCOPE.result_key("answer", ("x",))
    moved = Scope("acme", "docs", Epoch(1, 3), "model", "r1")
    assert SCOPE.result_key("search", ()) != moved.result_key("search", ())
