"""Opening and running sessions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from encoders.errors import EncodingFailed, ModelNotFound, ModelUnsupported
from encoders.onnx import OnnxSession, Tensor
from tests.fakes.tiny_models import make_tiny_bi_encoder


def _session(folder: Path) -> OnnxSession:
    return OnnxSession.open(make_tiny_bi_encoder(folder) / "onnx" / "model.onnx", "tiny")


def _inputs(length: int) -> dict[str, np.ndarray]:
    ids = np.full((1, length), 5, dtype=np.int64)
    return {"input_ids": ids, "attention_mask": ids, "token_type_ids": np.zeros_like(ids)}


def test_session_tells_its_inputs_and_outputs(tmp_path: Path) -> None:
    """A length that varies is -1."""
    session = _session(tmp_path)
    assert [tensor.name for tensor in session.inputs] == ["input_ids", "attention_mask", "token_type_ids"]
    assert session.outputs == (Tensor("last_hidden_state", (-1, -1, 16)),)


def test_missing_model_file_is_not_found(tmp_path: Path) -> None:
    """A path without a file is named."""
    with pytest.raises(ModelNotFound, match=r"no file model\.onnx"):
        OnnxSession.open(tmp_path / "model.onnx", "tiny")


@pytest.mark.parametrize("content", [b"", b"not a model", b"\x08\x08" * 40])
def test_broken_model_file_is_unsupported(tmp_path: Path, content: bytes) -> None:
    """What ONNX Runtime raises about a file becomes one error of ours, with the cause chained."""
    path = tmp_path / "model.onnx"
    path.write_bytes(content)
    with pytest.raises(ModelUnsupported, match="cannot open") as refused:
        OnnxSession.open(path, "tiny")
    assert refused.value.__cause__ is not None


@pytest.mark.parametrize("change", ["missing input", "wrong type", "unknown id", "unknown output"])
def test_failing_run_is_translated(tmp_path: Path, change: str) -> None:
    """What ONNX Runtime raises about inputs becomes one error of ours."""
    session, inputs, output = _session(tmp_path), _inputs(3), "last_hidden_state"
    if change == "missing input":
        del inputs["input_ids"]
    elif change == "wrong type":
        inputs["input_ids"] = inputs["input_ids"].astype(np.float32)
    elif change == "unknown id":
        inputs["input_ids"] = np.full((1, 3), 10**6, dtype=np.int64)
    else:
        output = "nothing"
    with pytest.raises(EncodingFailed):
        session.run(inputs, output)
    assert session.run(_inputs(3), "last_hidden_state").shape == (1, 3, 16)


def test_session_is_shared_by_threads(tmp_path: Path) -> None:
    """Several threads run one session at once and get what one would."""
    session = _session(tmp_path)
    expected = [session.run(_inputs(length), "last_hidden_state") for length in range(1, 40)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda length: session.run(_inputs(length), "last_hidden_state"), range(1, 40)))
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)
