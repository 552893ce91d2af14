"""What a sparse encoder promises; the model is a tiny masked language model with random weights."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("fastembed", reason="an extra: splade")

from encoders.errors import ExtraMissing, ModelUnsupported, NonFiniteOutput
from encoders.models import resolve
from encoders.onnx import OnnxSession
from encoders.sources import ModelSource
from encoders.sparse import SparseEncoder
from encoders.splade import SpladeEncoder
from tests.fakes.tiny_models import make_tiny_bi_encoder, make_tiny_masked_lm
from tests.fakes.tiny_tokenizers import POISON


def _open(folder: Path) -> SpladeEncoder:
    return SpladeEncoder.open(resolve(ModelSource(str(folder))))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Makes a model."""
    return make_tiny_masked_lm(tmp_path_factory.mktemp("splade"))


@pytest.fixture(scope="module")
def encoder(folder: Path) -> SpladeEncoder:
    """Opens it."""
    return _open(folder)


def test_weight_of_a_word_is_the_highest_saturated_logit(encoder: SpladeEncoder, folder: Path) -> None:
    """It is the maximum over tokens of ln(1 + relu(logit)); words without a weight are left out."""
    sparse: SparseEncoder = encoder
    (found,) = sparse.encode_passages(["pump seal"])
    (item,) = encoder.tokenization.texts(["pump seal"])
    ids = item.ids[np.newaxis]
    inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
    logits = OnnxSession.open(folder / "model.onnx", "m").run(inputs, "logits")[0]
    expected = np.log1p(np.maximum(logits, 0)).max(axis=0)
    np.testing.assert_array_equal(found.indices, np.flatnonzero(expected))
    np.testing.assert_allclose(found.values, expected[found.indices], rtol=1e-6)
    assert found.indices.dtype == np.uint32
    assert found.values.dtype == np.float32
    assert 0 < len(found.indices) < len(expected)
    assert (found.values > 0).all()


def test_vector_never_depends_on_its_neighbours(encoder: SpladeEncoder) -> None:
    """EMB-02: alone and among others a text has the same weights to the last bit."""
    (alone,) = encoder.encode_queries(["valve torque"])
    among = encoder.encode_queries(["valve torque", "! " * 300, ""])[0]
    np.testing.assert_array_equal(alone.indices, among.indices)
    np.testing.assert_array_equal(alone.values, among.values)


def test_text_is_cut_and_counted_here(encoder: SpladeEncoder) -> None:
    """EMB-20: what lies beyond the limit is cut, with a flag, before the model sees it."""
    cut, short = encoder.tokenization.texts(["pump " * 200, "pump " * 62])
    assert (cut.token_count, cut.truncated, short.truncated) == (64, True, False)
    one, other = encoder.encode_passages(["pump " * 200, "pump " * 62])
    np.testing.assert_array_equal(one.values, other.values)


def test_no_texts_are_no_vectors(encoder: SpladeEncoder) -> None:
    """An empty list stays one."""
    assert encoder.encode_passages([]) == []


def test_text_with_a_weight_that_is_no_number_fails(encoder: SpladeEncoder) -> None:
    """NaN never becomes a weight."""
    with pytest.raises(NonFiniteOutput):
        encoder.encode_passages([POISON])


def test_bi_encoder_is_refused_as_a_sparse_encoder(tmp_path: Path) -> None:
    """A model without a logit a word is refused with one sentence."""
    with pytest.raises(ModelUnsupported, match="it gives vectors and scores no pairs; choose a SPLADE model"):
        _open(make_tiny_bi_encoder(tmp_path))


@pytest.mark.parametrize("name", ["model.onnx", "tokenizer_config.json"])
def test_file_that_fastembed_cannot_read_is_an_error_of_the_model(tmp_path: Path, name: str) -> None:
    """A damaged file is named with what to do, whatever fastembed raises."""
    make_tiny_masked_lm(tmp_path)
    (tmp_path / name).write_text("{}", encoding="ascii")
    with pytest.raises(ModelUnsupported, match="fastembed cannot open"):
        _open(tmp_path)


def test_missing_library_names_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without fastembed the sentence says what to install."""
    monkeypatch.setitem(sys.modules, "encoders.splade_model", None)
    with pytest.raises(ExtraMissing, match=r"headrace\[splade\]"):
        _open(folder)
