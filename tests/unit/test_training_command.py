"""`headrace rerank train` before anything is trained: what stops it, and what it leaves."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import pytest

from rerank.calibrate import Mixture
from retrieval.cli.main import execute
from retrieval.cli.rerank_train import _first_stage
from retrieval.settings.load import load_settings
from tests.fakes.tiny_models import make_tiny_bi_encoder

_LIBRARIES = ("torch", "sentence_transformers", "datasets", "accelerate")


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """Writes a plan and what it names, with a pair that can be learnt from."""
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "config.json").write_text("{}", encoding="utf-8")
    (tmp_path / "own.jsonl").write_text('{"query": "pump", "passage": "seal"}\n', encoding="utf-8")
    path = tmp_path / "plan.toml"
    path.write_text('start = "m"\n[[labelled]]\npairs = "own.jsonl"\n', encoding="utf-8")
    return path


def _libraries(monkeypatch: pytest.MonkeyPatch, there: Sequence[str]) -> None:
    found, json = importlib.util.find_spec, importlib.util.find_spec("json")
    known = {name: json if name in there else None for name in _LIBRARIES}
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: known[name] if name in known else found(name))


def _train(plan: Path, capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, str]:
    environment = {"HEADRACE_ENCODERS__DENSE__MODEL": str(make_tiny_bi_encoder(plan.parent / "encoder"))}
    work, data = str(plan.parent / "work"), str(plan.parent / "data")
    code = execute(["rerank", "train", str(plan), "--work", work, "--data", data, *options], environment)
    return code, capsys.readouterr().err


def test_missing_file_is_said_before_the_libraries_are_asked_for(
    plan: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A gigabyte is not installed for a plan that names a file that is not there."""
    _libraries(monkeypatch, [])
    (plan.parent / "own.jsonl").unlink()
    code, said = _train(plan, capsys)
    assert code == 2
    assert "own.jsonl" in said
    assert "torch" not in said
    assert not (plan.parent / "work").exists()


def test_missing_library_leaves_no_work_folder(
    plan: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run did not start, so its folder belongs to no plan."""
    _libraries(monkeypatch, ["torch"])
    code, said = _train(plan, capsys)
    assert code == 1
    assert "pip install 'headrace[train]'" in said
    assert not (plan.parent / "work").exists()


def test_unreadable_data_leaves_no_work_folder(
    plan: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A line that cannot be learnt from stops the run before it takes the folder."""
    _libraries(monkeypatch, _LIBRARIES)
    (plan.parent / "own.jsonl").write_text("pump seal\n", encoding="utf-8")
    code, said = _train(plan, capsys)
    assert code == 2
    assert "line 1 is no JSON" in said
    assert not (plan.parent / "work").exists()


def test_other_settings_are_another_run(
    plan: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Pools of other weights must not be gone on with; the refusal names the folder."""
    _libraries(monkeypatch, _LIBRARIES)
    work = plan.parent / "work"
    work.mkdir()
    (work / "plan.txt").write_text(plan.read_text(encoding="utf-8"), encoding="utf-8")
    code, said = _train(plan, capsys, "--set", "rerank.late.weight=0.5")
    assert code == 1
    assert f"{work} holds a run of another plan, or of other settings" in said


def test_first_stage_is_that_of_the_settings() -> None:
    """What is mined and judged is weighed as the service weighs it."""
    served = _first_stage(load_settings(None, {}, {}).settings)
    assert (served.dense_weight, served.branch, served.mixture) == (0.65, 100, Mixture(0.6, 0.4, 0.0))
    changed = {"retrieval.dense_weight": 0.5, "rerank.first_stage_weight": 2.0, "rerank.late.weight": 3.0}
    found = _first_stage(load_settings(None, {}, changed).settings)
    assert (found.dense_weight, found.mixture) == (0.5, Mixture(2.0, 3.0, 0.0))


def test_help_names_the_documentation(capsys: pytest.CaptureFixture[str]) -> None:
    """The page with the keys of a plan is one command away."""
    assert execute(["rerank", "train", "--help"], {"COLUMNS": "200"}) == 0
    assert "docs/training.md" in capsys.readouterr().out
