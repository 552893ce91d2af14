"""From torch weights to a checked ONNX model, for each kind of model, and what happens when it cannot be."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")

from encoders.catalog.checking import check_files
from encoders.catalog.folders import onnx_files
from encoders.catalog.quantized import quantize_folder
from encoders.catalog.record import read_record
from encoders.dense import OnnxDenseEncoder
from encoders.errors import ModelCheckFailed, ModelNotFound, ModelUnsupported
from encoders.export import exporting
from encoders.export.exporting import export
from encoders.models import resolve
from encoders.sources import ModelSource
from tests.fakes.hub_runs import Hub
from tests.fakes.hub_server import COMMIT, HubServer, Repository
from tests.fakes.tiny_folders import open_pairs
from tests.fakes.tiny_models import write_json
from tests.train.tiny_torch import make_modular_cross_encoder, make_torch_model

pytestmark = [
    pytest.mark.train,
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
ROOT = Path(__file__).parents[2]
_LONG = "the pump and the seal of the valve, torque of the pump: " * 4


@pytest.mark.parametrize("kind", ["bert", "modernbert"])
def test_bi_encoder_computes_what_sentence_transformers_does(tmp_path: Path, kind: str) -> None:
    """Token states through our own pooling are the vectors of the torch model, at lengths past a local window too."""
    from sentence_transformers import SentenceTransformer

    source = make_torch_model(tmp_path / "source", kind)
    record = export(source, "acme/tiny", "abc", tmp_path / "made", open_pairs)
    assert (record.dim, record.pooling, record.licence, record.revision) == (32, "mean", "mit", "abc")
    assert record.export is not None
    assert record.export.largest_difference < 1e-4
    assert record.checks["fp32"].passed
    assert read_record(tmp_path / "made", "m") == record
    expected = SentenceTransformer(str(source), device="cpu").encode([_LONG, "soup"], normalize_embeddings=True)
    encoder = OnnxDenseEncoder.open(resolve(ModelSource(str(tmp_path / "made"))))
    np.testing.assert_allclose(encoder.encode_passages([_LONG, "soup"]), expected, atol=1e-4)


@pytest.mark.parametrize(("kind", "classes"), [("bert", 1), ("bert", 2), ("modernbert", 1), ("modernbert", 2)])
def test_cross_encoder_computes_what_sentence_transformers_does(tmp_path: Path, kind: str, classes: int) -> None:
    """One logit is the score, of two the second less the first."""
    from sentence_transformers import CrossEncoder
    from torch.nn import Identity

    source = make_torch_model(tmp_path / "source", kind, classes=classes)
    record = export(source, "acme/tiny", "", tmp_path / "made", open_pairs)
    assert record.checks["fp32"].passed
    pairs = [("torque", "the valve"), ("seal of the pump", "soup and cats")]
    found = np.asarray(CrossEncoder(str(source), device="cpu").predict(pairs, activation_fn=Identity()))
    expected = found if classes == 1 else found[:, 1] - found[:, 0]
    opened = open_pairs(resolve(ModelSource(str(tmp_path / "made"))))
    np.testing.assert_allclose([opened.score(*pair[:1], pair[1:])[0] for pair in pairs], expected, atol=1e-4)


def test_head_of_modules_becomes_part_of_the_graph(tmp_path: Path) -> None:
    """A cross-encoder may be a bare body with pooling and dense layers behind it, as newer ones are."""
    body = make_torch_model(tmp_path / "body", "modernbert")
    source = make_modular_cross_encoder(tmp_path / "source", body)
    record = export(source, "acme/tiny", "", tmp_path / "made", open_pairs)
    assert record.kind.value == "cross-encoder"
    assert record.checks["fp32"].passed
    assert check_files(tmp_path / "made", "m", open_pairs)["fp32"].passed


def test_exported_model_is_quantized_in_its_folder(tmp_path: Path) -> None:
    """Export in place, then int8 beside it; the record keeps both steps."""
    folder = make_torch_model(tmp_path / "model", "bert")
    export(folder, "m", "", folder, open_pairs)
    record = quantize_folder(folder, "m", open_pairs)
    assert onnx_files(folder) == {"fp32": "model.onnx", "int8": "model_int8.onnx"}
    assert record.export is not None
    assert record.quantization is not None
    assert record.checks.keys() == {"fp32", "int8"}
    assert (folder / "model.safetensors").is_file()


@pytest.mark.parametrize(("difference", "faster", "kept"), [(0.5, True, False), (0.0, False, False), (0.0, True, True)])
def test_fused_graph_is_kept_when_it_is_right_and_faster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, difference: float, faster: bool, kept: bool
) -> None:
    """A fusion that changes results, or fails, is left out."""
    source = make_torch_model(tmp_path / "source", "bert")
    right = exporting._fused_difference
    monkeypatch.setattr(exporting, "_fused_difference", lambda *given: right(*given) + difference)
    monkeypatch.setattr(exporting, "_is_faster", lambda *_: faster)
    record = export(source, "m", "", tmp_path / "made", open_pairs)
    assert record.export is not None
    assert record.export.optimized is kept
    assert record.checks["fp32"].passed
    assert [path.name for path in (tmp_path / "made").glob("*.onnx")] == ["model.onnx"]


def test_graph_that_differs_from_torch_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is written when the file computes something else."""
    source = make_torch_model(tmp_path / "source", "bert")
    monkeypatch.setattr(exporting, "_TOLERANCE", -1.0)
    with pytest.raises(ModelCheckFailed, match="off torch's results"):
        export(source, "m", "", tmp_path / "made", open_pairs)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


@pytest.mark.parametrize("fault", ["no weights", "half of the weights", "three classes", "a language model"])
def test_model_that_cannot_be_exported_is_one_sentence(tmp_path: Path, fault: str) -> None:
    """Missing or damaged weights, too many classes, another kind of model: refused, nothing left behind."""
    source = make_torch_model(tmp_path / "source", "bert", classes=3 if fault == "three classes" else 0)
    weights = source / "model.safetensors"
    if fault == "no weights":
        weights.unlink()
    elif fault == "half of the weights":
        weights.write_bytes(weights.read_bytes()[: weights.stat().st_size // 2])
    elif fault == "a language model":
        config = json.loads((source / "config.json").read_text(encoding="utf-8"))
        write_json(source / "config.json", {**config, "architectures": ["LlamaForCausalLM"]})
        (source / "modules.json").unlink()
        (source / "1_Pooling" / "config.json").unlink()
    with pytest.raises((ModelUnsupported, ModelNotFound)):
        export(source, "m", "", tmp_path / "made", open_pairs)
    assert [path.name for path in tmp_path.iterdir()] == ["source"]


def test_tokenizer_in_its_slow_form_is_saved_as_a_fast_one(tmp_path: Path) -> None:
    """A model that was published with a vocabulary only gets the file that serving needs."""
    source = make_torch_model(tmp_path / "source", "bert")
    vocabulary = json.loads((source / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    (source / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.get)), encoding="utf-8")
    (source / "tokenizer.json").unlink()
    write_json(source / "tokenizer_config.json", {"tokenizer_class": "BertTokenizer", "model_max_length": 256})
    record = export(source, "m", "", tmp_path / "made", open_pairs)
    assert "tokenizer.json" in record.files


def test_torch_weights_of_the_hub_are_exported_by_their_id(tmp_path: Path) -> None:
    """Fetched, exported into the models folder under the id, and recorded with the commit."""
    source = make_torch_model(tmp_path / "source", "bert", classes=1)
    with HubServer({"acme/pairs": Repository(source)}) as server:
        hub = Hub(server, tmp_path)
        ended = hub.run("export", "acme/pairs", "--json")
    assert ended.returncode == 0, ended.stderr
    record = json.loads(ended.stdout)
    assert (record["model"], record["revision"], record["kind"]) == ("acme/pairs", COMMIT, "cross-encoder")
    assert record["checks"]["fp32"]["passed"] is True
    assert {"acme/pairs/model.onnx", "acme/pairs/headrace-model.json", "acme/pairs/README.md"} <= set(hub.pulled)
    assert "acme/pairs/model.safetensors" not in hub.pulled


def test_no_space_while_exporting_leaves_nothing(tmp_path: Path) -> None:
    """A write that the system refuses ends in one sentence with the exit code 1, and in no file."""
    source = make_torch_model(tmp_path / "source", "bert")
    before = sorted(tmp_path.rglob("*"))
    program = (
        "import resource, sys\nfrom retrieval.cli.main import execute\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (30_000, 30_000))\n"
        f"sys.exit(execute(['models', 'export', {str(source)!r}, '--to', {str(tmp_path / 'made')!r}], {{}}))"
    )
    environ = {"PYTHONPATH": f"{ROOT}:{ROOT / 'proto'}", "PYTHONDONTWRITEBYTECODE": "1", "HOME": str(tmp_path / "home")}
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, cwd=ROOT, env=environ, check=False
    )
    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "cannot be written" in ended.stderr.strip().splitlines()[-1]
    assert [path for path in sorted(tmp_path.rglob("*")) if "home" not in path.parts] == before
