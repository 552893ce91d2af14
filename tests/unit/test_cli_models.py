"""`headrace models` on local folders, as a person and as a program read it."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest

from encoders.catalog.record import RECORD_FILE, read_record
from encoders.models import resolve
from encoders.sources import ModelSource, locate
from retrieval.cli.main import execute
from tests.fakes.tiny_folders import change_weights, make_tiny_folder

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Makes a models folder below a data folder, with a model of each kind."""
    monkeypatch.chdir(tmp_path)
    make_tiny_folder(tmp_path / "data" / "models" / "acme" / "texts")
    make_tiny_folder(tmp_path / "data" / "models" / "acme" / "pairs", paired=True, logits=2)
    return tmp_path / "data" / "models"


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Runs `headrace models` and returns its exit code, what it printed, and what it said on standard error."""
    code = execute(["models", *arguments], {})
    said = capsys.readouterr()
    return code, said.out, said.err


def value(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """Runs `headrace models ... --json`, which must end well, and returns what it printed."""
    code, out, err = run(capsys, *arguments, "--json")
    assert code == 0, err
    return json.loads(out)


@pytest.mark.parametrize("model", ["acme/texts", "acme/pairs"])
def test_model_is_quantized_checked_measured_and_listed(
    models: Path, capsys: pytest.CaptureFixture[str], model: str
) -> None:
    """From one full-precision file to a record, by the name under the models folder."""
    made = value(capsys, "quantize", model)
    assert made["quantization"]["reduce_range"] is True
    assert made["checks"]["int8"]["passed"] is True
    checked = value(capsys, "check", model)
    assert {precision: found["passed"] for precision, found in checked["checks"].items()} == {
        "fp32": True,
        "int8": True,
    }
    bench = value(capsys, "bench", model)
    assert [one["tokens"] for one in bench["speeds"]["int8"]] == [16, 32, 64, 128, 256]
    listed = {one["name"]: one for one in value(capsys, "list")["models"]}[model]
    assert listed["recorded"] is True
    assert listed["record"]["checks"]["int8"]["passed"] is True
    assert listed["precisions"] == ["fp32", "int8"]


def test_tables_name_what_a_person_asks(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kind, licence, precision and the outcome of the check stand in the tables."""
    assert run(capsys, "quantize", "acme/texts")[0] == 0
    code, out, _ = run(capsys, "list")
    assert code == 0
    for word in ("bundled:minilm-l6", "acme/pairs", "cross-encoder", "bi-encoder", "mit", "fp32 int8", "int8 good"):
        assert word in out
    code, out, _ = run(capsys, "check", "acme/texts")
    assert code == 0
    assert "rank agreement" in out
    code, out, err = run(capsys, "bench", "acme/texts")
    assert code == 0
    assert "int8 faster by" in out
    assert "256 tokens" in err


def test_failed_check_exits_with_one(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A model that computes something else than its references is said to fail, in the table and by the code."""
    folder = models / "acme" / "texts"
    assert run(capsys, "quantize", "acme/texts")[0] == 0
    change_weights(folder / "onnx" / "model.onnx", lambda array: array[..., ::-1].copy())
    code, _, err = run(capsys, "check", "acme/texts")
    assert (code, "changed since it was recorded" in err) == (1, True)
    change_weights(folder / "onnx" / "model.onnx", lambda array: array * range(array.shape[-1]))
    code, out, err = run(capsys, "check", "acme/texts", "--record")
    assert code == 1
    assert "FAILED" in out
    assert "fp32 failed the check" in err
    record = read_record(folder, "acme/texts")
    assert record is not None
    assert not record.checks["fp32"].passed
    assert "FAILED" in run(capsys, "list")[1]


def test_half_a_file_is_one_sentence(models: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A copy that broke off is found by its hash, or without a record when it is opened."""
    weights = models / "acme" / "texts" / "onnx" / "model.onnx"
    whole = weights.read_bytes()
    weights.write_bytes(whole[: len(whole) // 2])
    code, _, err = run(capsys, "check", "acme/texts")
    assert (code, "cannot open model.onnx" in err) == (1, True)
    weights.write_bytes(whole)
    assert run(capsys, "quantize", "acme/texts")[0] == 0
    weights.write_bytes(whole[: len(whole) // 2])
    code, _, err = run(capsys, "check", "acme/texts")
    assert (code, "onnx/model.onnx changed" in err) == (1, True)


def test_check_of_the_bundled_model_leaves_the_package_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """It is found by its name, needs no models folder, and agrees with its references on this CPU."""
    record = locate(ModelSource("bundled:minilm-l6")) / RECORD_FILE
    before = record.stat()
    found = value(capsys, "check", "bundled:minilm-l6", "--folder", "nowhere")
    assert found["checks"]["int8"]["passed"] is True
    assert record.stat().st_ino == before.st_ino


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (["quantize", "acme/nothing"], 2, "pull or export the model first"),
        (["quantize", "bundled:minilm-l6"], 2, "pull or export the model first"),
        (["check", "no such model"], 1, "there is no such folder"),
        (["pull", "no-owner"], 1, "write it as owner/name"),
    ],
)
def test_model_that_is_not_there_is_one_sentence(
    models: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, sentence: str
) -> None:
    """Nothing is fetched for a name that cannot be one of the hub's."""
    found, _, err = run(capsys, *arguments)
    assert found == code
    assert sentence in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(("command", "library"), [("export", "torch"), ("quantize", "onnx")])
def test_missing_extra_says_how_to_install_it(
    models: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, command: str, library: str
) -> None:
    """Without its libraries a tool says which extra brings them."""
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == library else found(name))
    code, _, err = run(capsys, command, str(models / "acme" / "texts"))
    assert code == 1
    assert "pip install 'headrace[export]'" in err
    assert library in err


def test_fit_tokens_makes_a_model_that_passes_its_check(
    models: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """The projection lies beside the weights, in the record too, and the model has another revision."""
    before = resolve(ModelSource("acme/texts", models_folder=models)).revision
    value(capsys, "check", "acme/texts", "--record")
    passages = tmp_path / "passages.txt"
    passages.write_text("the pump leaks\n" + json.dumps({"title": "Seals", "text": "a valve"}), encoding="utf-8")
    made = value(capsys, "fit-tokens", "acme/texts", "--passages", str(passages), "--dim", "4", "--bits", "2")
    assert (made["code_bytes"], made["passages"]) == (1, 2)
    assert run(capsys, "check", "acme/texts")[0] == 0
    assert resolve(ModelSource("acme/texts", models_folder=models)).revision != before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["bundled:minilm-l6", "--passages", "p.txt"], "say with --to"),
        (["acme/texts", "--passages", "missing.txt"], "cannot be read"),
        (["acme/texts", "--passages", "p.txt", "--bits", "3"], "whole bytes"),
        (["acme/texts", "--passages", "p.txt", "--to", "nowhere/late.npz"], "make it first"),
        (["acme/texts", "--passages", "broken.jsonl"], "line 1 is no JSON object"),
    ],
)
def test_fit_tokens_says_what_is_wrong(
    models: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    """One sentence, and nothing is written."""
    Path("p.txt").write_text("the pump\n", encoding="utf-8")
    Path("broken.jsonl").write_text('{"title": "no text"}\n', encoding="utf-8")
    code, _, err = run(capsys, "fit-tokens", *arguments)
    assert code == 2
    assert said in err
    assert not list(models.rglob("late.npz"))
