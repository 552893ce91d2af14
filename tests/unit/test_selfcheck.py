"""The comparison with references."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from encoders.catalog.references import PAIRS, PairReferences, TextReferences
from encoders.dense import OnnxDenseEncoder
from encoders.errors import ModelCheckFailed
from encoders.measured import Measurements
from encoders.models import resolve
from encoders.selfcheck import LOWEST_COSINE, PairCheck, TextCheck, require_passed
from encoders.sources import ModelSource
from encoders.variants import open_checked
from rerank.cross_encoder import OnnxCrossEncoder
from tests.fakes.tiny_models import make_tiny_bi_encoder, make_tiny_cross_encoder, write_json

_TEXTS = ("pump", "seal of the valve", "torque", "soup", "cats and soup, cats and soup")


@pytest.fixture
def encoder(tmp_path: Path) -> OnnxDenseEncoder:
    """Opens a tiny model."""
    return OnnxDenseEncoder.open(resolve(ModelSource(str(make_tiny_bi_encoder(tmp_path)))))


@pytest.fixture
def cross_encoder(tmp_path: Path) -> OnnxCrossEncoder:
    """Opens a tiny cross-encoder."""
    return OnnxCrossEncoder.open(resolve(ModelSource(str(make_tiny_cross_encoder(tmp_path)))))


def test_bundled_model_computes_its_references_on_this_cpu() -> None:
    """EMB-14: all stored full-precision vectors come out of the int8 model here, and rank each other alike."""
    files = resolve(ModelSource("bundled:minilm-l6"))
    check = TextCheck()
    references = check.read(files.folder, files.model_id)
    assert references is not None
    figures = check.compare(OnnxDenseEncoder.open(files), references, "int8")
    assert figures.passed
    assert (figures.lowest_cosine or 0.0) >= LOWEST_COSINE["int8"]
    assert figures.rank_agreement > 0.85


def test_texts_agree_with_the_model_s_own_vectors(encoder: OnnxDenseEncoder) -> None:
    """A model agrees with itself."""
    references = TextReferences(_TEXTS, encoder.encode_passages(_TEXTS))
    figures = TextCheck().compare(encoder, references, "fp32")
    assert figures.passed
    assert figures.lowest_cosine == pytest.approx(1.0, abs=1e-5)
    assert (figures.rank_agreement, figures.reference_count) == (1.0, 5)


def test_quick_check_takes_the_short_texts_and_the_full_one_all(encoder: OnnxDenseEncoder) -> None:
    """A fault in the longest text is found when every text is asked for."""
    vectors = encoder.encode_passages(_TEXTS)
    vectors[4] = -vectors[4]
    references = TextReferences(_TEXTS, vectors)
    assert TextCheck().compare(encoder, references, "fp32", quick=True).passed
    assert not TextCheck().compare(encoder, references, "fp32").passed


def test_pairs_agree_by_correlation_and_rank(cross_encoder: OnnxCrossEncoder) -> None:
    """Logits that are those of the model pass; those of another model do not, whole or in a quick check."""
    check = PairCheck(OnnxCrossEncoder.open)
    own = check.make(cross_encoder)
    figures = check.compare(cross_encoder, own, "fp32")
    assert figures.passed
    assert figures.pearson == pytest.approx(1.0)
    turned = PairReferences(PAIRS, -3.0 * own.logits)
    assert not check.compare(cross_encoder, turned, "int8").passed
    assert not check.compare(cross_encoder, turned, "int8", quick=True).passed


def test_wrong_model_is_refused_with_its_figures(encoder: OnnxDenseEncoder) -> None:
    """One sentence says how far off it is and what to do."""
    vectors = encoder.encode_passages(_TEXTS)[::-1]
    figures = TextCheck().compare(encoder, TextReferences(_TEXTS, vectors), "int8")
    with pytest.raises(ModelCheckFailed, match=r"int8 file agrees .* on this CPU; use another export"):
        require_passed("tiny", "int8", figures)


@pytest.mark.parametrize(
    "content",
    [
        [],
        {},
        {"texts": [], "fp32_vectors": []},
        {"texts": ["a"], "fp32_vectors": [[1.0]]},
        {"texts": 3, "fp32_vectors": 4},
        {"texts": ["pump"], "fp32_vectors": [[float("nan")] * 16]},
    ],
)
def test_model_with_unusable_references_is_refused(tmp_path: Path, content: object) -> None:
    """A damaged file is no reason to serve unchecked."""
    source = ModelSource(str(make_tiny_bi_encoder(tmp_path)))
    write_json(tmp_path / "reference.json", content)
    with pytest.raises(ModelCheckFailed, match="restore or remove"):
        open_checked(source, TextCheck(), Measurements())


def test_model_without_references_is_served_unchecked(tmp_path: Path) -> None:
    """A model of somebody else ships none, and nothing is claimed about it."""
    chosen = open_checked(ModelSource(str(make_tiny_bi_encoder(tmp_path))), TextCheck(), Measurements())
    assert (chosen.choice.figures, chosen.choice.precision) == (None, "fp32")


def test_full_check_is_done_once_for_a_machine(tmp_path: Path) -> None:
    """A warm start reads the figures and compares the short texts only."""
    source, memory = ModelSource(str(make_tiny_bi_encoder(tmp_path))), Measurements(tmp_path / "measured.json")
    encoder = OnnxDenseEncoder.open(resolve(source))
    vectors = encoder.encode_passages(_TEXTS)
    write_json(tmp_path / "reference.json", {"texts": _TEXTS, "fp32_vectors": vectors.tolist()})
    first = open_checked(source, TextCheck(), memory)
    assert first.choice.figures is not None
    assert first.choice.figures.reference_count == 5
    vectors[4] = -vectors[4]
    write_json(tmp_path / "reference.json", {"texts": _TEXTS, "fp32_vectors": vectors.tolist()})
    assert open_checked(source, TextCheck(), Measurements(tmp_path / "measured.json")).choice == first.choice
    with pytest.raises(ModelCheckFailed):
        open_checked(source, TextCheck(), Measurements())
    vectors[0] = -vectors[0]
    write_json(tmp_path / "reference.json", {"texts": _TEXTS, "fp32_vectors": np.asarray(vectors).tolist()})
    with pytest.raises(ModelCheckFailed):
        open_checked(source, TextCheck(), memory)
