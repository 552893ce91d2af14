"""The store of vectors that benchmarks keep between runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from bench._common.cached_encoder import CachedEncoder
from bench._common.vectors import VectorStore
from encoders.types import TextKind, WorkClass
from tests.fakes.encoders import HashEncoder

DIM = 8


def _vectors(count: int) -> np.ndarray:
    return np.random.default_rng(count).random((count, DIM), dtype=np.float32)


def test_store_gives_back_what_an_earlier_run_put(tmp_path: Path) -> None:
    """Bit for bit, after opening it again."""
    vectors = _vectors(3)
    VectorStore(tmp_path, "r1", DIM).put(["a", "b", "c"], TextKind.PASSAGE, vectors)
    again = VectorStore(tmp_path, "r1", DIM)
    assert len(again) == 3
    assert np.array_equal(again.get("b", TextKind.PASSAGE), vectors[1])


def test_store_tells_queries_from_passages_and_revisions_apart(tmp_path: Path) -> None:
    """The same text is another vector in another role or of another model."""
    VectorStore(tmp_path, "r1", DIM).put(["a"], TextKind.PASSAGE, _vectors(1))
    assert VectorStore(tmp_path, "r1", DIM).get("a", TextKind.QUERY) is None
    assert VectorStore(tmp_path, "r2", DIM).get("a", TextKind.PASSAGE) is None


def test_store_survives_a_run_that_was_killed_while_writing(tmp_path: Path) -> None:
    """Half an entry is cut off and later ones are whole."""
    VectorStore(tmp_path, "r1", DIM).put(["a"], TextKind.PASSAGE, _vectors(1))
    for name in ("vectors.f32", "keys.bin"):
        with (tmp_path / "r1" / name).open("ab") as file:
            file.write(b"abc")
    vectors = _vectors(2)
    VectorStore(tmp_path, "r1", DIM).put(["b", "c"], TextKind.PASSAGE, vectors)
    again = VectorStore(tmp_path, "r1", DIM)
    assert len(again) == 3
    assert np.array_equal(again.get("c", TextKind.PASSAGE), vectors[1])


def test_two_stores_append_beside_each_other(tmp_path: Path) -> None:
    """Two processes that fill one store lose nothing."""
    first, second = VectorStore(tmp_path, "r1", DIM), VectorStore(tmp_path, "r1", DIM)
    first.put(["a"], TextKind.QUERY, _vectors(1))
    second.put(["b"], TextKind.QUERY, _vectors(1))
    first.put(["c"], TextKind.QUERY, _vectors(1))
    again = VectorStore(tmp_path, "r1", DIM)
    assert all(again.get(text, TextKind.QUERY) is not None for text in "abc")


async def test_cached_encoder_computes_a_text_once(tmp_path: Path) -> None:
    """A second run asks the encoder for nothing, and gives the same vectors."""
    inner = HashEncoder(DIM)
    first = await _encode(CachedEncoder(inner, VectorStore(tmp_path, "r1", DIM)), ["x", "y", "x"])
    second = await _encode(CachedEncoder(inner, VectorStore(tmp_path, "r1", DIM)), ["y", "z"])
    assert inner.texts == ["x", "y", "z"]
    assert np.array_equal(first[1], second[0])
    assert np.array_equal(first[0], first[2])


async def test_cached_encoder_does_not_remember_a_failure(tmp_path: Path) -> None:
    """A text that failed is tried again, and does not fail the others."""
    inner = HashEncoder(DIM)
    encoder = CachedEncoder(inner, VectorStore(tmp_path, "r1", DIM))
    for _ in range(2):
        outcomes = await encoder.encode(["fine", "POISON"], TextKind.PASSAGE, WorkClass.BULK, None)
        assert [outcome.error is None for outcome in outcomes] == [True, False]
    assert inner.texts == ["fine", "POISON", "POISON"]


async def _encode(encoder: CachedEncoder, texts: list[str]) -> list[np.ndarray]:
    outcomes = await encoder.encode(texts, TextKind.QUERY, WorkClass.ONLINE, None)
    return [outcome.value for outcome in outcomes if outcome.value is not None]
