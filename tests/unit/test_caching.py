"""Keys, the two tiers of a cache, and query embeddings in them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from encoders.types import EncodedQuery
from indexers.filters import Filter, MatchAny
from indexers.types import Epoch
from retrieval.caching import embeddings
from retrieval.caching.embeddings import CachedQuery, EmbeddingShape, decode, encode
from retrieval.caching.keys import CacheKey, Purpose, hash_parts
from retrieval.caching.open import check_sharing
from retrieval.caching.s3fifo import S3Fifo
from retrieval.caching.shared import NoSharedTier, Stored
from retrieval.caching.tiered import Sharing, Tiered
from retrieval.errors import ConfigError
from retrieval.scope import ModelRevisions, within
from retrieval.settings import Settings
from tests.fakes.scopes import scope

VECTOR = np.array([0.6, 0.8], dtype=np.float32)
TOKENS = np.array([[0.1, 0.2, 0.3], [0.0, 0.4, 0.1]], dtype=np.float32)
QUERY = CachedQuery(EncodedQuery(VECTOR, TOKENS), 3)
SHAPE = EmbeddingShape(2, 3)


class DictTier(NoSharedTier):
    """A shared tier that keeps what it is given."""

    def __init__(self) -> None:
        self.values: dict[CacheKey, bytes] = {}

    def put(self, key: CacheKey, value: bytes, ttl_s: float) -> None:
        """Keeps the value."""
        self.values[key] = value


def _cache(tier: DictTier | None = None) -> Tiered[CachedQuery]:
    memory: S3Fifo[CacheKey, CachedQuery] = S3Fifo("query_embeddings", 10_000, embeddings.size_of)
    if tier is None:
        return Tiered(memory)
    return Tiered(memory, Sharing(tier, encode, decode, lambda: 60.0))


def _same(found: CachedQuery | None) -> None:
    assert found is not None
    assert found.encoded.vector.tolist() == VECTOR.tolist()
    assert found.encoded.tokens is not None
    assert found.encoded.tokens.tolist() == TOKENS.tolist()
    assert found.token_count == 3


def test_tiered_keeps_values_as_they_are_in_this_process_and_bytes_in_the_shared_tier() -> None:
    """What another process wrote is found by its key, and kept here from then on."""
    tier, key = DictTier(), scope().embedding_key("why")
    _cache(tier).put(key, QUERY)
    other = _cache(tier)
    assert other.get(key) is None
    _same(other.take(key, Stored(tier.values[key], 0.0)))
    _same(other.get(key))
    assert _cache().take(key, Stored(tier.values[key], 0.0)) is None


def test_tiered_damaged_value_of_the_shared_tier_is_a_miss() -> None:
    """Nothing is kept of it (case RED-06)."""
    cache, key = _cache(DictTier()), scope().embedding_key("why")
    assert cache.take(key, Stored(b"garbage", 0.0)) is None
    assert cache.take(key, None) is None
    assert cache.get(key) is None


OTHERS: Sequence[dict[str, object]] = (
    {"tenant": "other"},
    {"data_policy": "eu"},
    {"collection": "other"},
    {"incarnation": "2026-02-02"},
    {"epoch": Epoch(1, 3)},
    {"epoch": Epoch(2, 2)},
    {"models": ModelRevisions("model@r2")},
    {"models": ModelRevisions("model@r1", "splade@r1")},
    {"models": ModelRevisions("model@r1", "", "cross@r1")},
    {"filter": Filter(must=(MatchAny("lang", ("de",)),))},
)


@pytest.mark.parametrize("changed", OTHERS)
def test_result_key_holds_everything_of_the_scope(changed: dict[str, object]) -> None:
    """Whatever differs, the result is another one."""
    assert scope().result_key("why", 1) != scope(**changed).result_key("why", 1)


@pytest.mark.parametrize("changed", OTHERS)
def test_partition_holds_everything_of_the_scope_but_the_epoch(changed: dict[str, object]) -> None:
    """An answer's evidence tells whether it outlives a write; everything else must agree exactly."""
    same = scope().partition(1) == scope(**changed).partition(1)
    assert same is ("epoch" in changed)


@pytest.mark.parametrize("changed", [{"tenant": "other"}, {"models": ModelRevisions("model2@r1")}])
def test_embedding_key_holds_tenant_and_model(changed: dict[str, object]) -> None:
    """Everything that shapes the vector, and whose it is; not the collection's state."""
    assert scope().embedding_key("why") != scope(**changed).embedding_key("why")
    assert scope().embedding_key("why") == scope(epoch=Epoch(9, 9)).embedding_key("why")


def test_keys_tell_values_of_one_filter_type_apart() -> None:
    """1, 1.0, true and "1" are four filters."""
    keys = {scope(filter=Filter(must=(MatchAny("x", (value,)),))).result_key("why", 1) for value in (1, 1.0, True, "1")}
    assert len(keys) == 4


def test_keys_do_not_collide_by_concatenation_nor_across_purposes() -> None:
    """Each part is hashed with its length, and the purpose with them."""
    assert hash_parts(Purpose.RESULT, ("ab", "c")) != hash_parts(Purpose.RESULT, ("a", "bc"))
    assert hash_parts(Purpose.RESULT, ("a",)) != hash_parts(Purpose.ANSWER, ("a",))
    assert scope().result_key("a", "b") != scope().result_key("b", "a")
    assert scope().embedding_key("a") != scope().token_codes_key("a")
    assert within(scope().partition(1), "a") != within(scope().partition(2), "a")


def test_keys_take_any_text() -> None:
    """Lone surrogates, null characters and nothing at all are texts like others."""
    assert len({scope().embedding_key(text) for text in ("", "\x00", "\ud800", "\udfff", " ")}) == 5


def _changed(vector: list[float], tokens: NDArray[np.float32] | None = TOKENS) -> bytes:
    return encode(CachedQuery(EncodedQuery(np.array(vector, dtype=np.float32), tokens), 3))


@pytest.mark.parametrize(
    "stored",
    [
        encode(QUERY)[:-3],
        encode(QUERY)[:9],
        encode(QUERY) + b"\x00" * 12,
        _changed([0.0, 0.0]),
        _changed([np.nan, 1.0]),
        _changed([0.6, 0.8], np.full_like(TOKENS, np.inf)),
        b"\x01" + encode(QUERY)[1:],
        b"abc",
    ],
)
def test_embeddings_damaged_values_are_misses(stored: bytes) -> None:
    """Cut, too long, zero, NaN or garbage: a miss, never an error (case RED-06)."""
    assert decode(stored) is None


def test_embeddings_of_an_encoder_without_token_vectors_come_back_without() -> None:
    """No token vectors are told apart from a question without any token that counts."""
    bare, empty = EncodedQuery(VECTOR, None), EncodedQuery(VECTOR, TOKENS[:0])
    found, none = decode(encode(CachedQuery(empty, 3))), decode(encode(CachedQuery(bare, 3)))
    assert found is not None
    assert found.encoded.tokens is not None
    assert len(found.encoded.tokens) == 0
    assert none is not None
    assert (found.shape, none.shape) == (SHAPE, EmbeddingShape(2))
    assert none.encoded.tokens is None


def test_results_of_embedded_collections_are_not_shared() -> None:
    """Two copies of a data folder would write different results under one key."""
    shared = {"cache": {"redis": {"share_results": True}}}
    check_sharing(Settings())
    check_sharing(Settings.model_validate(shared | {"index": {"kind": "qdrant", "qdrant": {"url": "http://q:6334"}}}))
    with pytest.raises(ConfigError, match="share_results"):
        check_sharing(Settings.model_validate(shared))
