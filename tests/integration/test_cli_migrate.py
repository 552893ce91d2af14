"""The command that moves a collection to another model, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from retrieval.cli.main import execute
from tests.fakes.tiny_models import make_tiny_bi_encoder


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Runs a command and returns its exit code, what it printed, and what it said on standard error."""
    code = execute(arguments, {})
    said = capsys.readouterr()
    return code, said.out, said.err


def test_collection_moves_and_comes_back(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Each step says what it did, how good it is and what can be done next; the way back is gone once it is kept."""
    (tmp_path / "dam.md").write_text("# Dams\n\nA dam holds back a river; the spillway lets surplus water pass.\n")
    (tmp_path / "questions.jsonl").write_text('{"query": "what lets water pass", "relevant": ["dam.md"]}\n')
    config = tmp_path / "headrace.toml"
    config.write_text(f'[data]\nfolder = "{tmp_path / "data"}"\n')
    model = str(make_tiny_bi_encoder(tmp_path / "tiny"))
    options = ("--config", str(config))
    assert run(capsys, "index", str(tmp_path / "dam.md"), "--collection", "dams", *options)[0] == 0
    move = ("collections", "migrate", "dams", "--model", model, "--questions", str(tmp_path / "questions.jsonl"))
    code, shown, _ = run(capsys, *move, *options)
    assert code == 0
    assert "1, of which 1 were encoded" in shown
    assert "1.000, before 1.000" in shown
    code, shown, _ = run(capsys, *move, *options)
    assert code == 0
    assert "the collection is of that model already" in shown
    assert "to go back" not in shown
    code, shown, _ = run(capsys, "collections", "migrate", "dams", "--back", *options)
    assert code == 0
    assert "1, of which 0 were encoded" in shown
    assert run(capsys, "collections", "migration", "dams", "--forget", *options)[0] == 0
    code, _, said = run(capsys, "collections", "migrate", "dams", "--back", *options)
    assert code == 1
    assert "there is nothing to go back to" in said
