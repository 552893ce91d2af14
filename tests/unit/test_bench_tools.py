"""What the tools share: passages, results, memory, and the same chunks as the server's."""

from __future__ import annotations

import gzip
import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

from bench._common.memory import own_bytes
from bench._common.passages import cut_to_tokens, read_passages, read_questions
from bench._common.pipelines import field_type
from bench._common.plots import Line, Titles, plot_bars, plot_lines, plot_stack
from bench._common.results import Outputs, command, plain, write_results
from bench._common.statistics import quantiles
from bench.recall import recall_of
from indexers.types import FieldType
from retrieval.settings import Settings
from tests.fakes.encoders import PieceCounter


def test_passages_are_read_packed_and_bounded(tmp_path: Path) -> None:
    """The first of a gzip file, without reading on."""
    path = tmp_path / "passages.jsonl.gz"
    with gzip.open(path, "wt", encoding="utf-8") as file:
        for number in range(3):
            file.write(json.dumps({"_id": str(number), "title": "T", "text": f"text {number}"}) + "\n")
    assert [document.text for document in read_passages(path, 2)] == ["text 0", "text 1"]


def test_questions_are_json_lines_or_plain_lines(tmp_path: Path) -> None:
    """Empty lines are no questions."""
    path = tmp_path / "questions"
    path.write_text('{"_id": "1", "text": "how?"}\n\nwhy is that\n', encoding="utf-8")
    assert read_questions(path) == ["how?", "why is that"]
    assert read_questions(path, 1) == ["how?"]


def test_cut_keeps_whole_tokens() -> None:
    """A short text stays as it is."""
    assert cut_to_tokens("one two three", PieceCounter(), 2) == "one two"
    assert cut_to_tokens("one two", PieceCounter(), 2) == "one two"


def test_field_type_holds_every_value() -> None:
    """Mixed kinds are keywords; lists count by their values."""
    assert field_type("year", [{"year": 1}, {"year": (2, 3)}, {}]) is FieldType.INTEGER
    assert field_type("on", [{"on": True}]) is FieldType.BOOL
    assert field_type("mixed", [{"mixed": 1}, {"mixed": "a"}]) is FieldType.KEYWORD
    assert field_type("none", [{}]) is FieldType.KEYWORD


def test_recall_counts_equal_scores_as_found() -> None:
    """A copy of the tenth passage is as good as the tenth; more than ten is not better."""
    exact = np.array([0.9, 0.8, 0.7], dtype=np.float32)
    assert recall_of(np.array([0.9, 0.8, 0.7], dtype=np.float32), exact) == 1.0
    assert recall_of(np.array([0.9, 0.7, 0.6], dtype=np.float32), exact) == pytest.approx(2 / 3)
    assert recall_of(np.empty(0, dtype=np.float32), np.empty(0, dtype=np.float32)) == 1.0


def test_results_say_how_to_get_them_again(tmp_path: Path) -> None:
    """Commit, command, machine, versions, date and changed settings; no secret and no folder of this machine."""
    settings = Settings.model_validate({"retrieval": {"dense_weight": 0.3}, "data": {"folder": "/somewhere/else"}})
    write_results(tmp_path / "out" / "figures.json", {"set": {"hybrid": {"ndcg@10": 0.5}}}, settings)
    text = (tmp_path / "out" / "figures.json").read_text(encoding="utf-8")
    written = json.loads(text)
    assert written["set"]["hybrid"]["ndcg@10"] == 0.5
    assert written["run"]["settings"] == {"retrieval.dense_weight": 0.3}
    assert {"date", "commit", "command", "machine", "versions"} < set(written["run"])
    assert "somewhere" not in text


def test_command_leaves_out_where_files_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    """An absolute path tells about the machine, not about the run."""
    monkeypatch.setattr(sys, "argv", ["/anywhere/bench/quality.py", "/data/sets/nq", "--split", "test"])
    assert command() == "python -m bench.quality nq --split test"


def test_plain_figures_are_rounded() -> None:
    """Nested figures keep their names."""
    assert plain(quantiles([1_234_567])) == {
        "p50_ms": 1.2346,
        "p95_ms": 1.2346,
        "p99_ms": 1.2346,
        "max_ms": 1.2346,
        "count": 1,
    }


def test_plot_goes_beside_the_results_unless_told_otherwise(tmp_path: Path) -> None:
    """The name is the same, the suffix is not."""
    assert Outputs.of(tmp_path / "a.json", None).plot_file == tmp_path / "a.png"
    assert Outputs.of(None, tmp_path / "b.png").plot_file == tmp_path / "b.png"
    assert Outputs.of(None, None).plot_file is None


def test_plots_are_pictures(tmp_path: Path) -> None:
    """Each kind writes a PNG, without a screen."""
    titles = Titles("t", "x", "y")
    plot_bars(tmp_path / "bars.png", titles, ["a", "b"], {"one": [1.0, 2.0], "two": [2.0, 1.0]})
    plot_lines(tmp_path / "lines.png", titles, [Line("l", [1.0, 10.0], [0.0, 1.0])], log_x=True)
    plot_stack(tmp_path / "stack.png", titles, ["a"], {"one": [1.0], "two": [2.0]})
    for path in tmp_path.glob("*.png"):
        assert path.read_bytes().startswith(b"\x89PNG")
    assert len(list(tmp_path.glob("*.png"))) == 3


def test_own_bytes_leaves_nothing_out_and_survives_the_end() -> None:
    """A process that runs holds some megabytes; one that is gone holds none."""
    assert own_bytes(os.getpid()) > 1_000_000
    assert own_bytes(2**22 + 1) == 0
