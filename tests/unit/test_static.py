"""Static embeddings: the mean of one vector a token, and the files that hold them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from encoders.dense import OnnxDenseEncoder
from encoders.errors import ModelUnsupported, NonFiniteOutput
from encoders.models import resolve
from encoders.sources import ModelSource
from tests.fakes.tiny_models import make_tiny_static, write_json
from tests.fakes.tiny_tokenizers import tiny_tokenizer

_TEXT = "the seal of the pump"


def _open(folder: Path) -> OnnxDenseEncoder:
    return OnnxDenseEncoder.open(resolve(ModelSource(str(folder))))


def _ids(text: str) -> list[int]:
    tokenizer = tiny_tokenizer()
    tokenizer.no_padding()
    tokenizer.no_truncation()
    found: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return found


def _unit(vector: np.ndarray) -> np.ndarray:
    unit: np.ndarray = vector / np.linalg.norm(vector)
    return unit


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "float64"])
def test_vector_is_the_mean_of_the_tokens_vectors(tmp_path: Path, dtype: str) -> None:
    """Whatever number type the vectors are kept in, their mean is taken in float32 and scaled to unit length."""
    encoder = _open(make_tiny_static(tmp_path, dtype=dtype))
    rows = load_file(tmp_path / "model.safetensors")["embeddings"][_ids(_TEXT)].astype(np.float64)
    found = encoder.encode_passages([_TEXT])[0]
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, _unit(rows.mean(axis=0)), atol=1e-6)


def test_reduced_vocabulary_maps_and_weighs_its_tokens(tmp_path: Path) -> None:
    """Tokens that share a row keep a weight of their own."""
    encoder = _open(make_tiny_static(tmp_path, reduced=True))
    tensors, ids = load_file(tmp_path / "model.safetensors"), _ids(_TEXT)
    rows = tensors["embeddings"][tensors["mapping"][ids]] * tensors["weights"][ids][:, None]
    np.testing.assert_allclose(encoder.encode_queries([_TEXT])[0], _unit(rows.mean(axis=0)), atol=1e-6)


def test_model_of_sentence_transformers_is_read_where_it_lies(tmp_path: Path) -> None:
    """A StaticEmbedding step keeps its files in the folder or in one of its own, under its own tensor name."""
    expected = _open(make_tiny_static(tmp_path / "one")).encode_queries([_TEXT])
    make_tiny_static(tmp_path / "two" / "0_StaticEmbedding", name="embedding.weight")
    step = {"idx": 0, "path": "0_StaticEmbedding", "type": "sentence_transformers.models.StaticEmbedding"}
    write_json(tmp_path / "two" / "modules.json", [step])
    np.testing.assert_array_equal(_open(tmp_path / "two").encode_queries([_TEXT]), expected)


def test_unknown_tokens_do_not_count(tmp_path: Path) -> None:
    """A word that the vocabulary lacks is left out of the mean and of the tokens."""
    encoder = _open(make_tiny_static(tmp_path))
    known, mixed = encoder.tokenization.texts(["pump seal", "pump 漢字 seal"])
    np.testing.assert_array_equal(known.ids, mixed.ids)
    assert mixed.full_token_count == 2


def test_text_without_a_known_token_lies_in_the_middle(tmp_path: Path) -> None:
    """It has the mean direction of the vocabulary, so that one such chunk does not cost its document the index."""
    encoder = _open(make_tiny_static(tmp_path))
    middle = _unit(load_file(tmp_path / "model.safetensors")["embeddings"].mean(axis=0))
    for vector in encoder.encode_passages(["", "漢字", " \n"]):
        np.testing.assert_allclose(vector, middle, atol=1e-5)


def test_tokens_that_cancel_out_have_no_vector(tmp_path: Path) -> None:
    """A sum without any direction is an error of its text alone."""
    make_tiny_static(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    (pump,), (seal,) = _ids("pump"), _ids("seal")
    tensors["embeddings"][seal] = -tensors["embeddings"][pump]
    save_file(tensors, tmp_path / "model.safetensors")
    encoder = _open(tmp_path)
    encoder.encode_passages(["pump", "seal"])
    with pytest.raises(NonFiniteOutput):
        encoder.encode_passages(["pump seal"])


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"embeddings": np.zeros((3, 4), np.float32)}, "vectors for 3 tokens"),
        ({"embeddings": np.zeros(5, np.float32)}, "no embeddings"),
        ({"embeddings": np.zeros((900, 0), np.float32)}, "no embeddings"),
        ({"embeddings": np.zeros((900, 4), np.float32)}, "no direction"),
        ({"embeddings": np.full((900, 4), np.nan, np.float32)}, "no direction"),
        ({"encoder.layer.0.weight": np.zeros((900, 4), np.float32)}, "no embeddings"),
        ({"embeddings": np.ones((9, 4), np.float32), "mapping": np.full(900, 9)}, "leads out"),
        ({"embeddings": np.ones((9, 4), np.float32), "mapping": np.full(900, -1)}, "leads out"),
        ({"embeddings": np.ones((900, 4), np.float32), "weights": np.ones(3, np.float32)}, "weights for 3"),
    ],
)
def test_file_that_does_not_fit_is_refused_when_it_is_opened(
    tmp_path: Path, change: dict[str, np.ndarray], reason: str
) -> None:
    """Vectors that are missing, empty or out of reach are found before the first text."""
    make_tiny_static(tmp_path)
    save_file(change, tmp_path / "model.safetensors")
    with pytest.raises(ModelUnsupported, match=reason):
        _open(tmp_path)


@pytest.mark.parametrize("kept_bytes", [0, 4, 100, 2000])
def test_file_that_broke_off_is_refused(tmp_path: Path, kept_bytes: int) -> None:
    """A half-downloaded file is an error of the model, not a crash."""
    path = make_tiny_static(tmp_path) / "model.safetensors"
    path.write_bytes(path.read_bytes()[:kept_bytes])
    with pytest.raises(ModelUnsupported, match="cannot be read"):
        _open(tmp_path)
