"""The comparison with reference vectors."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from encoders.dense import OnnxDenseEncoder
from encoders.errors import ModelCheckFailed
from encoders.models import resolve
from encoders.selfcheck import LOWEST_COSINE, check_dense
from encoders.sources import ModelSource
from tests.fakes.tiny_models import make_tiny_bi_encoder, write_json

_TEXTS = ["pump", "seal of the valve", "torque", "soup", "cats and soup, cats and soup"]


@pytest.fixture
def encoder(tmp_path: Path) -> OnnxDenseEncoder:
    """Opens a tiny model."""
    return OnnxDenseEncoder.open(resolve(ModelSource(str(make_tiny_bi_encoder(tmp_path)))))


def test_bundled_model_computes_its_references_on_this_cpu() -> None:
    """EMB-14: all stored full-precision vectors come out of the int8 model here."""
    files = resolve(ModelSource("bundled:minilm-l6"))
    lowest = check_dense(OnnxDenseEncoder.open(files), files.folder, every_text=True)
    assert lowest is not None
    assert lowest >= LOWEST_COSINE


def test_check_passes_with_the_model_s_own_vectors(encoder: OnnxDenseEncoder, tmp_path: Path) -> None:
    """References may be of any length."""
    vectors = encoder.encode_passages(_TEXTS) * 3.0
    write_json(tmp_path / "reference.json", {"texts": _TEXTS, "fp32_vectors": vectors.tolist()})
    assert check_dense(encoder, tmp_path) == pytest.approx(1.0, abs=1e-5)


def test_check_without_references_has_nothing_to_say(encoder: OnnxDenseEncoder, tmp_path: Path) -> None:
    """A model of somebody else ships none."""
    assert check_dense(encoder, tmp_path) is None


def test_quick_check_takes_the_short_texts_and_the_full_one_all(encoder: OnnxDenseEncoder, tmp_path: Path) -> None:
    """A fault in the longest text is found when every text is asked for."""
    vectors = encoder.encode_passages(_TEXTS)
    vectors[4] = -vectors[4]
    write_json(tmp_path / "reference.json", {"texts": _TEXTS, "fp32_vectors": vectors.tolist()})
    assert check_dense(encoder, tmp_path) == pytest.approx(1.0, abs=1e-5)
    with pytest.raises(ModelCheckFailed, match="on this CPU"):
        check_dense(encoder, tmp_path, every_text=True)


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"texts": [], "fp32_vectors": []},
        {"texts": ["a"], "fp32_vectors": [[1.0]]},
        {"texts": 3, "fp32_vectors": 4},
    ],
)
def test_unusable_references_fail_the_check(encoder: OnnxDenseEncoder, tmp_path: Path, content: object) -> None:
    """A damaged file is no reason to serve unchecked."""
    write_json(tmp_path / "reference.json", content)
    with pytest.raises(ModelCheckFailed, match="restore or remove"):
        check_dense(encoder, tmp_path)


def test_non_finite_reference_fails_the_check(encoder: OnnxDenseEncoder, tmp_path: Path) -> None:
    """A comparison with NaN is no agreement."""
    vectors = np.full((1, encoder.dim), np.nan).tolist()
    write_json(tmp_path / "reference.json", {"texts": ["pump"], "fp32_vectors": vectors})
    with pytest.raises(ModelCheckFailed):
        check_dense(encoder, tmp_path)
