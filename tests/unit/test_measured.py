"""What is remembered of this machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from encoders.measured import Measurements, machine


def test_figures_are_read_by_the_next_start(tmp_path: Path) -> None:
    """A file outlives the process; what and revision tell figures apart."""
    file = tmp_path / "folder" / "measured.json"
    Measurements(file).put("curve", "abc", {"ns": 1.5})
    Measurements(file).put("check", "abc", {"ns": 2})
    assert Measurements(file).get("curve", "abc") == {"ns": 1.5}
    assert Measurements(file).get("check", "abc") == {"ns": 2}
    assert Measurements(file).get("curve", "abd") is None
    assert [path.name for path in file.parent.iterdir()] == ["measured.json"]


def test_figures_of_another_machine_are_not_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder that moved to another processor is measured anew."""
    Measurements(tmp_path / "m.json").put("curve", "abc", {"ns": 1})
    monkeypatch.setattr("encoders.measured.machine", lambda: "another")
    assert Measurements(tmp_path / "m.json").get("curve", "abc") is None
    assert len(machine()) == 16


@pytest.mark.parametrize(
    "content", ["", "[]", '{"format": 1}', '{"format": 2, "entries": {"a": 1}}', '{"format": 1, "entries": 3}']
)
def test_damaged_file_is_measured_anew(tmp_path: Path, content: str) -> None:
    """It is a cache: it costs time, never a start."""
    file = tmp_path / "m.json"
    file.write_text(content, encoding="utf-8")
    memory = Measurements(file)
    assert memory.get("curve", "abc") is None
    memory.put("curve", "abc", {"ns": 1})
    assert Measurements(file).get("curve", "abc") == {"ns": 1}


def test_folder_that_cannot_be_written_is_no_fault(tmp_path: Path) -> None:
    """The process remembers by itself then."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    memory = Measurements(tmp_path / "file" / "m.json")
    memory.put("curve", "abc", {"ns": 1})
    assert memory.get("curve", "abc") == {"ns": 1}


def test_old_figures_make_room(tmp_path: Path) -> None:
    """The file is bounded."""
    memory = Measurements(tmp_path / "m.json")
    for number in range(300):
        memory.put("curve", str(number), {})
    assert memory.get("curve", "0") is None
    assert memory.get("curve", "299") == {}
