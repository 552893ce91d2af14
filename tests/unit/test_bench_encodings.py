"""The store of encodings that benchmarks keep between runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench._common.cached_encoder import CachedEncoder
from bench._common.encodings import EncodingStore, Stored
from encoders.late.codec import LevelCodec
from encoders.types import TextKind, WorkClass
from tests.fakes.encoders import HashEncoder

ONE, TWO = Stored(b"vector", b""), Stored(b"other", b"tokens")


def test_store_gives_back_what_an_earlier_run_put(tmp_path: Path) -> None:
    """Byte for byte, after opening it again; what was never put is missing."""
    EncodingStore(tmp_path, "r1").put([("a", ONE), ("b", TWO)], TextKind.PASSAGE)
    again = EncodingStore(tmp_path, "r1")
    assert len(again) == 2
    assert again.get(["b", "c", "a"], TextKind.PASSAGE) == {"a": ONE, "b": TWO}


def test_store_tells_queries_from_passages_and_revisions_apart(tmp_path: Path) -> None:
    """The same text is another vector in another role or of another model."""
    EncodingStore(tmp_path, "r1").put([("a", ONE)], TextKind.PASSAGE)
    assert EncodingStore(tmp_path, "r1").get(["a"], TextKind.QUERY) == {}
    assert EncodingStore(tmp_path, "r2").get(["a"], TextKind.PASSAGE) == {}


async def test_cached_encoder_computes_a_text_once(tmp_path: Path) -> None:
    """A second run asks the encoder for nothing, and gives the same vectors."""
    inner = HashEncoder()
    first = await _encode(CachedEncoder(inner, EncodingStore(tmp_path, "r1")), ["x", "y", "x"])
    second = await _encode(CachedEncoder(inner, EncodingStore(tmp_path, "r1")), ["y", "z"])
    assert inner.texts == ["x", "y", "z"]
    assert np.array_equal(first[1], second[0])
    assert np.array_equal(first[0], first[2])


async def test_cached_encoder_remembers_token_vectors_and_codes(tmp_path: Path) -> None:
    """A question's token vectors and a passage's codes come back as they were, those without any word as well."""
    inner = HashEncoder(codec=LevelCodec(16, 4))
    for _ in range(2):
        encoder = CachedEncoder(inner, EncodingStore(tmp_path, "r1"))
        query = (await encoder.encode_query("red pump", None)).value
        passages = await encoder.encode_passages(["blue pump", " "], WorkClass.BULK, None)
        expected = (await inner.encode_query("red pump", None)).value
        assert query is not None
        assert expected is not None
        assert np.array_equal(query.tokens, expected.tokens)  # type: ignore[arg-type]
        assert [outcome.value.codes.shape for outcome in passages if outcome.value] == [(2, 8), (0, 8)]  # type: ignore[union-attr]
    assert inner.texts.count("blue pump") == 1


async def test_cached_encoder_does_not_remember_a_failure(tmp_path: Path) -> None:
    """A text that failed is tried again, and does not fail the others."""
    inner = HashEncoder()
    encoder = CachedEncoder(inner, EncodingStore(tmp_path, "r1"))
    for _ in range(2):
        outcomes = await encoder.encode(["fine", "POISON"], TextKind.PASSAGE, WorkClass.BULK, None)
        assert [outcome.error is None for outcome in outcomes] == [True, False]
    assert inner.texts == ["fine", "POISON", "POISON"]


async def _encode(encoder: CachedEncoder, texts: list[str]) -> list[np.ndarray]:
    outcomes = await encoder.encode(texts, TextKind.QUERY, WorkClass.ONLINE, None)
    return [outcome.value for outcome in outcomes if outcome.value is not None]
