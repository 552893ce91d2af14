"""Token vectors: the codec, MaxSim, and the projection that a model ships."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from encoders.errors import ModelUnsupported
from encoders.late.codec import LevelCodec, max_similarities
from encoders.late.tokens import TokenProjection
from encoders.types import TokenizedText


def _unit(rows: int, dim: int, seed: int = 0) -> NDArray[np.float32]:
    vectors = np.random.default_rng(seed).standard_normal((rows, dim))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def _item(ids: list[int]) -> TokenizedText:
    tokens = np.array(ids, dtype=np.int64)
    return TokenizedText(tokens, np.zeros_like(tokens), len(tokens))


def _projection(bits: int = 4) -> TokenProjection:
    weights = np.array([0.0, 1.0, 3.0, 0.0], dtype=np.float32)
    return TokenProjection(np.eye(8, dtype=np.float32), np.zeros(8, dtype=np.float32), weights, LevelCodec(8, bits))


@pytest.mark.parametrize(("bits", "least"), [(4, 0.98), (2, 0.90)])
def test_codec_keeps_the_direction_of_a_vector(bits: int, least: float) -> None:
    """Decoded vectors point where the vectors pointed, as well as so few bits allow."""
    codec, vectors = LevelCodec(96, bits), _unit(200, 96)
    codes = codec.encode(vectors)
    decoded = codec.decode(codes)
    assert codes.shape == (200, 96 * bits // 8)
    cosines = (decoded * vectors).sum(axis=1) / np.linalg.norm(decoded, axis=1)
    assert float(cosines.min()) > least


@given(st.integers(0, 2**32 - 1), st.sampled_from([2, 4]))
def test_codec_decoded_vectors_encode_to_the_same_codes(seed: int, bits: int) -> None:
    """Every level lies within its own bounds, so codes are stable."""
    codec = LevelCodec(16, bits)
    codes = np.random.default_rng(seed).integers(0, 256, (5, codec.code_bytes), dtype=np.uint8)
    assert np.array_equal(codec.encode(codec.decode(codes)), codes)


@pytest.mark.parametrize(("dim", "bits"), [(96, 3), (3, 4), (0, 4), (6, 2)])
def test_codec_refuses_codes_that_do_not_fill_bytes(dim: int, bits: int) -> None:
    """Only 2 and 4 bits in whole bytes can be read through a table of bytes."""
    with pytest.raises(ValueError, match="whole bytes"):
        LevelCodec(dim, bits)


@given(st.lists(st.integers(0, 6), min_size=1, max_size=8), st.integers(0, 5), st.integers(0, 1000))
def test_max_similarities_agree_with_the_definition(lengths: list[int], query_tokens: int, seed: int) -> None:
    """For each passage the best product of each query token, summed; 0 without tokens, whatever stands beside it."""
    tokens, query = _unit(sum(lengths), 4, seed), _unit(query_tokens, 4, seed + 1)
    ends = np.cumsum(lengths)
    found = max_similarities(query, tokens, ends)
    for passage, (end, length) in enumerate(zip(ends, lengths, strict=True)):
        own = tokens[end - length : end]
        expected = sum(max(float(row @ token) for token in own) for row in query) if length else 0.0
        assert found[passage] == pytest.approx(expected, abs=1e-5)


def test_codec_score_of_a_passage_does_not_depend_on_its_neighbours() -> None:
    """A passage scores the same alone and among others."""
    codec, query = LevelCodec(32, 4), _unit(5, 32, 1)
    codes = codec.encode(_unit(30, 32))
    together = codec.scores(query, codes, np.array([10, 30]))
    alone = codec.scores(query, codes[10:], np.array([20]))
    assert together[1] == pytest.approx(float(alone[0]), abs=1e-6)


def test_projection_leaves_out_tokens_without_weight_and_shares_the_rest() -> None:
    """A question's token vectors are as long as their shares of the weights; tokens of weight 0 are gone."""
    states = _unit(4, 8)
    vectors = _projection().query_vectors(_item([0, 1, 2, 3]), states)
    assert np.linalg.norm(vectors, axis=1).tolist() == pytest.approx([0.25, 0.75])
    assert _projection().passage_codes(_item([0, 1, 2, 3]), states).shape == (2, 4)


def test_projection_of_a_text_without_tokens_that_count_is_empty() -> None:
    """A question of stop words has no token vectors, and a passage of them no codes."""
    states = _unit(2, 8)
    assert _projection().query_vectors(_item([0, 3]), states).shape == (0, 8)
    assert _projection().passage_codes(_item([0, 3]), states).shape == (0, 4)


def test_projection_comes_back_from_its_file(tmp_path: Path) -> None:
    """What is saved is what is loaded, to the precision of the file."""
    path = tmp_path / "late.npz"
    _projection(bits=2).save(path)
    found = TokenProjection.load(path, "m", 8, 4)
    assert (found.codec.dim, found.codec.bits) == (8, 2)
    assert found.token_weights.tolist() == [0.0, 1.0, 3.0, 0.0]


@pytest.mark.parametrize("content", [b"", b"not a zip", b"PK\x03\x04 cut off"])
def test_projection_damaged_file_is_refused(tmp_path: Path, content: bytes) -> None:
    """A damaged file is refused with what to do, not served around."""
    path = tmp_path / "late.npz"
    path.write_bytes(content)
    with pytest.raises(ModelUnsupported, match=r"late\.npz cannot be read"):
        TokenProjection.load(path, "m", 8, 4)


def test_projection_gives_a_repeated_token_one_code() -> None:
    """A token that occurs twice has one code, of the direction between its two states."""
    states = np.zeros((3, 8), dtype=np.float32)
    states[0, 0] = states[1, 1] = states[2, 0] = 1.0
    codes = _projection().passage_codes(_item([2, 1, 1]), states)
    alone = _projection().passage_codes(_item([1, 2]), _unit(2, 8))
    assert codes.shape == alone.shape
    between = _projection().codec.decode(codes)[0]
    assert between[0] == pytest.approx(between[1])


@pytest.mark.parametrize(("state_dim", "vocabulary_size"), [(9, 4), (8, 5), (8, 3)])
def test_projection_of_another_model_is_refused(tmp_path: Path, state_dim: int, vocabulary_size: int) -> None:
    """A file for other states or another vocabulary would only fail on the first text."""
    path = tmp_path / "late.npz"
    _projection().save(path)
    with pytest.raises(ModelUnsupported, match="belongs to another model"):
        TokenProjection.load(path, "m", state_dim, vocabulary_size)


def test_projection_with_nan_is_refused(tmp_path: Path) -> None:
    """NaN would leave every question without tokens, in silence."""
    path, broken = tmp_path / "late.npz", _projection()
    broken.projection[0, 0] = np.nan
    broken.save(path)
    with pytest.raises(ModelUnsupported, match="belongs to another model"):
        TokenProjection.load(path, "m", 8, 4)
