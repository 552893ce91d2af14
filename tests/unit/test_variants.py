"""Which of a model's files serves."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from encoders.catalog.references import write_text_references
from encoders.errors import ModelCheckFailed
from encoders.measured import Measurements
from encoders.selfcheck import PairCheck, TextCheck
from encoders.sources import ModelSource
from encoders.variants import open_checked
from rerank.cross_encoder import OnnxCrossEncoder
from tests.fakes.quantized import add_int8, change_words
from tests.fakes.tiny_models import make_tiny_bi_encoder, make_tiny_cross_encoder


def _with_int8(folder: Path) -> ModelSource:
    add_int8(folder)
    return ModelSource(str(folder))


def test_both_files_are_compared_and_the_choice_is_kept(tmp_path: Path) -> None:
    """The faster file that agrees serves, says by how much, and stays the choice of the next start."""
    source = _with_int8(make_tiny_cross_encoder(tmp_path / "model"))
    check = PairCheck(OnnxCrossEncoder.open)
    first = open_checked(source, check, Measurements(tmp_path / "measured.json"))
    assert first.choice.int8_speed is not None
    assert first.choice.int8_speed > 0.0
    assert first.choice.figures is not None
    assert first.choice.figures.passed
    name = {"fp32": "model.onnx", "int8": "model_int8.onnx"}[first.choice.precision]
    assert first.files.weights.name == name
    second = open_checked(source, check, Measurements(tmp_path / "measured.json"))
    assert (second.choice, second.files.revision) == (first.choice, first.files.revision)


def test_int8_file_that_computes_something_else_is_passed_over(tmp_path: Path) -> None:
    """Speed never buys a wrong model: the full-precision file serves, whichever is faster."""
    folder = make_tiny_cross_encoder(tmp_path / "model")
    other = make_tiny_cross_encoder(tmp_path / "other", seed=99)
    shutil.copy(add_int8(other), folder / "onnx" / "model_int8.onnx")
    chosen = open_checked(ModelSource(str(folder)), PairCheck(OnnxCrossEncoder.open), Measurements())
    assert chosen.choice.precision == "fp32"


def test_named_file_is_taken_as_named(tmp_path: Path) -> None:
    """A setting that names a file is a decision; nothing is compared."""
    source = _with_int8(make_tiny_cross_encoder(tmp_path))
    named = ModelSource(source.model, file="onnx/model_int8.onnx")
    chosen = open_checked(named, PairCheck(OnnxCrossEncoder.open), Measurements())
    assert (chosen.choice.precision, chosen.choice.int8_speed) == ("int8", None)


def test_folder_with_an_int8_file_alone_is_served_from_it(tmp_path: Path) -> None:
    """The usual name is no condition."""
    source = _with_int8(make_tiny_cross_encoder(tmp_path))
    (tmp_path / "onnx" / "model.onnx").unlink()
    chosen = open_checked(source, PairCheck(OnnxCrossEncoder.open), Measurements())
    assert chosen.choice.precision == "int8"


def test_no_file_that_agrees_is_refused(tmp_path: Path) -> None:
    """EMB-14: a folder whose references neither file computes is not served."""
    source = ModelSource(str(make_tiny_bi_encoder(tmp_path)))
    references = TextCheck().make(open_checked(source, TextCheck(), Measurements()).encoder)
    write_text_references(tmp_path, references)
    change_words(tmp_path / "onnx" / "model.onnx", lambda words: words[::-1])
    add_int8(tmp_path)
    with pytest.raises(ModelCheckFailed, match="on this CPU"):
        open_checked(source, TextCheck(), Measurements())
