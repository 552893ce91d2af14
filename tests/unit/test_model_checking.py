"""The full check of a model folder, quantizing, and measuring, on tiny models."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from encoders.catalog import quantized
from encoders.catalog.benching import bench_folder, lengths
from encoders.catalog.checking import check_files, write_references
from encoders.catalog.folders import fresh_record, onnx_files
from encoders.catalog.quantized import multiplies_exactly, quantize_folder
from encoders.catalog.record import read_record, write_record
from encoders.catalog.recording import check_recorded
from encoders.catalog.references import PAIRS, TEXTS, read_pair_references, read_text_references
from encoders.errors import ModelCheckFailed, ModelNotFound, ModelUnsupported
from tests.fakes.tiny_folders import change_weights, make_tiny_folder, open_pairs
from tests.fakes.tiny_models import make_tiny_bi_encoder, write_json

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture(params=[False, True], ids=["bi-encoder", "cross-encoder"])
def folder(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Makes a tiny model of either kind."""
    return make_tiny_folder(tmp_path / "model", paired=request.param)


def test_model_agrees_with_references_of_its_own(folder: Path) -> None:
    """Without references the full-precision file is compared with itself; with written ones the same comes out."""
    before = check_files(folder, "m", open_pairs)
    write_references(folder, "m", open_pairs)
    after = check_files(folder, "m", open_pairs)
    for figures in (before["fp32"], after["fp32"]):
        assert figures.passed
        assert figures.reference_count == 16
        assert figures.rank_agreement == pytest.approx(1.0, abs=0.01)


def test_weights_that_changed_fail_the_check(folder: Path) -> None:
    """References outlive the weights, so other weights are noticed."""
    write_references(folder, "m", open_pairs)
    change_weights(folder / "onnx" / "model.onnx", lambda array: array[..., ::-1].copy() * np.arange(array.shape[-1]))
    figures = check_files(folder, "m", open_pairs)["fp32"]
    assert not figures.passed


def test_references_fit_the_format_of_the_start_up_check(tmp_path: Path) -> None:
    """Texts with vectors of unit length, or pairs with logits, and each can be read back."""
    texts = make_tiny_folder(tmp_path / "texts")
    write_references(texts, "m", open_pairs)
    assert json.loads((texts / "reference.json").read_text(encoding="utf-8")).keys() == {"texts", "fp32_vectors"}
    stored = read_text_references(texts, "m")
    assert stored is not None
    assert stored.texts == TEXTS
    np.testing.assert_allclose(np.linalg.norm(stored.vectors, axis=1), 1.0, atol=1e-5)
    pairs = make_tiny_folder(tmp_path / "pairs", paired=True)
    write_references(pairs, "m", open_pairs)
    logits = read_pair_references(pairs, "m")
    assert logits is not None
    assert (logits.pairs, len(logits.logits)) == (PAIRS, 16)


@pytest.mark.parametrize("content", [[], {}, {"texts": ["a"], "fp32_vectors": [[0.0]]}, {"pairs": [["a"]]}])
def test_unusable_references_fail_the_check(folder: Path, content: object) -> None:
    """A damaged file is no reason to go unchecked."""
    write_json(folder / "reference.json", content)
    with pytest.raises(ModelCheckFailed, match="cannot be used"):
        check_files(folder, "m", open_pairs)


def test_references_of_another_dimension_are_refused(tmp_path: Path) -> None:
    """Vectors of another model cannot be compared."""
    folder = make_tiny_folder(tmp_path / "model")
    write_json(folder / "reference.json", {"texts": ["a"], "fp32_vectors": [[1.0, 0.0]]})
    with pytest.raises(ModelCheckFailed, match="does not fit the model"):
        check_files(folder, "m", open_pairs)


def test_quantized_file_is_checked_and_recorded(folder: Path) -> None:
    """The int8 file lies beside the other, references were made, and the record vouches for both."""
    record = quantize_folder(folder, "m", open_pairs)
    assert onnx_files(folder) == {"fp32": "onnx/model.onnx", "int8": "onnx/model_int8.onnx"}
    assert read_record(folder, "m") == record
    assert record.quantization is not None
    assert record.quantization.reduce_range
    assert record.checks["int8"].passed
    assert {"onnx/model_int8.onnx", "reference.json", "onnx/model.onnx"} <= record.files.keys()
    assert check_recorded(folder, "m", open_pairs)["int8"] == record.checks["int8"]


def test_quantizing_again_keeps_what_the_record_knew(folder: Path) -> None:
    """A second run replaces the file and leaves revision and export facts alone."""
    write_record(folder, fresh_record(folder, "acme/tiny", "abc", 16))
    quantize_folder(folder, "m", open_pairs)
    record = quantize_folder(folder, "m", open_pairs)
    assert (record.model, record.revision) == ("acme/tiny", "abc")


@pytest.mark.parametrize("fault", ["not a number", "not its references"])
def test_model_that_int8_would_spoil_stays_as_it_was(tmp_path: Path, fault: str) -> None:
    """An int8 file that is no model, or too far off the references, is refused, and nothing is left behind."""
    if fault == "not its references":
        folder = make_tiny_folder(tmp_path / "model")
        write_references(folder, "m", open_pairs)
        change_weights(folder / "onnx" / "model.onnx", lambda array: array[..., ::-1].copy())
        change_weights(folder / "onnx" / "model.onnx", lambda array: array * np.arange(array.shape[-1]))
    else:
        folder = make_tiny_bi_encoder(tmp_path / "model", max_tokens=256)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises((ModelCheckFailed, ModelUnsupported)):
        quantize_folder(folder, "m", open_pairs)
    assert sorted(tmp_path.rglob("*")) == before


def test_changed_file_is_not_quantized(folder: Path) -> None:
    """What the record vouches for must still hold."""
    quantize_folder(folder, "m", open_pairs)
    change_weights(folder / "onnx" / "model.onnx", lambda array: array * 2)
    with pytest.raises(ModelCheckFailed, match="changed since"):
        quantize_folder(folder, "m", open_pairs)
    with pytest.raises(ModelCheckFailed, match="changed since"):
        check_recorded(folder, "m", open_pairs)


def test_trusting_check_records_the_files_as_they_are(folder: Path) -> None:
    """With `--record` the present files are vouched for, a damaged record included."""
    (folder / "headrace-model.json").write_text("{", encoding="utf-8")
    check_recorded(folder, "m", open_pairs, trusting=True)
    change_weights(folder / "onnx" / "model.onnx", lambda array: array * 2)
    check_recorded(folder, "m", open_pairs, trusting=True)
    record = read_record(folder, "m")
    assert record is not None
    assert record.checks["fp32"].passed
    assert check_recorded(folder, "m", open_pairs)["fp32"].passed


@pytest.mark.parametrize(
    ("content", "exact"),
    [
        ("flags : fpu avx2 avx512_vnni sse", True),
        ("flags : avx_vnni", True),
        ("flags : avx2 avx512f", False),
        ("Features : fp asimd asimddp", True),
    ],
)
def test_exact_products_are_read_off_the_cpu(tmp_path: Path, content: str, exact: bool) -> None:
    """EMB-14: only instructions that add in 32 bits allow full-range weights."""
    (tmp_path / "cpuinfo").write_text(content, encoding="utf-8")
    assert multiplies_exactly(tmp_path / "cpuinfo") is exact


def test_full_range_is_refused_where_products_saturate(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """EMB-14: weights of all 8 bits are wrong on a CPU without VNNI, so they are not made there."""
    monkeypatch.setattr(quantized, "multiplies_exactly", lambda: False)
    with pytest.raises(ModelUnsupported, match="no VNNI"):
        quantize_folder(folder, "m", open_pairs, full_range=True)


def test_folder_without_full_precision_is_sent_to_export(tmp_path: Path) -> None:
    """There is nothing to quantize, check or measure without an ONNX file."""
    folder = make_tiny_folder(tmp_path / "model")
    (folder / "onnx" / "model.onnx").unlink()
    for work in (quantize_folder, check_files, bench_folder):
        with pytest.raises(ModelNotFound, match="headrace models export"):
            work(folder, "m", open_pairs)


def test_bench_measures_both_files_at_the_same_lengths(folder: Path) -> None:
    """Every length up to the limit, both precisions, quality beside speed."""
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": 40})
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    write_json(folder / "config.json", {**config, "max_position_embeddings": 40})
    quantize_folder(folder, "m", open_pairs)
    seen: list[int] = []
    bench = bench_folder(folder, "m", open_pairs, seen.append)
    assert seen == [16, 32, 40]
    for precision in ("fp32", "int8"):
        speeds = bench.speeds[precision]
        assert [speed.tokens for speed in speeds] == seen
        assert all(speed.tokens_per_s > 0 and speed.ms_per_token > 0 for speed in speeds)
        assert bench.figures[precision].passed


def test_lengths_double_up_to_the_limit() -> None:
    """The limit itself is always measured."""
    assert lengths(512) == [16, 32, 64, 128, 256, 512]
    assert lengths(100) == [16, 32, 64, 100]
    assert lengths(8) == [8]
