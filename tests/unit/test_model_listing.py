"""Which models are found, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from encoders.catalog.listing import list_models
from encoders.catalog.quantized import quantize_folder
from encoders.errors import ModelNotFound
from encoders.kinds import ModelKind
from encoders.models import resolve
from encoders.sources import ModelSource, locate
from tests.fakes.tiny_folders import change_weights, make_tiny_folder, open_pairs
from tests.fakes.tiny_models import write_json


def test_bundled_models_come_first_and_need_no_folder(tmp_path: Path) -> None:
    """A folder that is not there holds no models."""
    first = list_models(tmp_path / "nothing")[0]
    assert first.name.startswith("bundled:")
    assert first.precisions == ("int8",)
    assert (first.fault, first.recorded, first.changed) == ("", True, ())
    assert first.record is not None
    assert (first.record.licence, first.record.dim) == ("apache-2.0", 384)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_local_models_are_listed_by_name_with_their_records(tmp_path: Path) -> None:
    """Recorded and unrecorded ones, with and without an owner; work in progress and parts of models are none."""
    make_tiny_folder(tmp_path / "acme" / "pairs", paired=True)
    config = {"architectures": ["BertModel"], "hidden_size": 16}
    write_json(make_tiny_folder(tmp_path / "plain") / "config.json", config)
    make_tiny_folder(tmp_path / "acme" / ".pairs.x")
    quantize_folder(tmp_path / "acme" / "pairs", "acme/pairs", open_pairs)
    local = {model.name: model for model in list_models(tmp_path) if not model.name.startswith("bundled:")}
    assert list(local) == ["plain", "acme/pairs"]
    plain, pairs = local.values()
    assert (plain.recorded, plain.precisions, plain.changed) == (False, ("fp32",), ())
    assert plain.record is not None
    assert (plain.record.kind, plain.record.dim, plain.record.licence) == (ModelKind.BI_ENCODER, 16, "mit")
    assert (pairs.recorded, pairs.precisions, pairs.changed) == (True, ("fp32", "int8"), ())
    assert pairs.record is not None
    assert pairs.record.checks["int8"].passed


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_list_verifies_hashes_and_survives_broken_models(tmp_path: Path) -> None:
    """A changed file is named, and a folder that cannot be read is listed with its fault."""
    make_tiny_folder(tmp_path / "changed")
    quantize_folder(tmp_path / "changed", "changed", open_pairs)
    change_weights(tmp_path / "changed" / "onnx" / "model.onnx", lambda array: array * 2)
    broken = make_tiny_folder(tmp_path / "broken")
    (broken / "config.json").write_text("{", encoding="utf-8")
    writer = make_tiny_folder(tmp_path / "writer")
    write_json(writer / "config.json", {"architectures": ["LlamaForCausalLM"]})
    (writer / "modules.json").unlink()
    (writer / "1_Pooling" / "config.json").unlink()
    local = {model.name: model for model in list_models(tmp_path)}
    assert local["changed"].changed == ("onnx/model.onnx",)
    assert "config.json cannot be read" in local["broken"].fault
    assert "writes text" in local["writer"].fault


def test_models_folder_is_looked_into_before_the_hub(tmp_path: Path) -> None:
    """A fetched model is found by its id, and a name never leads out of the folder."""
    folder = make_tiny_folder(tmp_path / "models" / "acme" / "tiny")
    source = ModelSource("acme/tiny", models_folder=tmp_path / "models")
    assert locate(source) == folder
    assert resolve(source).model_id == "acme/tiny"
    with pytest.raises(ModelNotFound):
        locate(ModelSource("x/../../models", models_folder=tmp_path / "models"))
