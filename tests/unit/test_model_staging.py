"""Nothing half done is ever seen, and a full disk is an error of ours."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from encoders.catalog.record import RECORD_FILE
from encoders.catalog.staging import copy_into, staged
from encoders.errors import ModelNotWritten
from tests.fakes.tiny_folders import make_tiny_folder

ROOT = Path(__file__).parents[2]


def test_new_folder_appears_when_it_is_whole(tmp_path: Path) -> None:
    """Until the end there is nothing at the place."""
    target = tmp_path / "owner" / "name"
    with staged(target, "m") as fresh:
        (fresh / "a").write_text("1", encoding="utf-8")
        assert not target.exists()
    assert [path.name for path in target.iterdir()] == ["a"]
    assert list(target.parent.iterdir()) == [target]


def test_files_join_those_that_are_there(tmp_path: Path) -> None:
    """Others stay, those of the same name are replaced, folders included."""
    target = tmp_path / "model"
    for name, text in (("old", "old"), ("onnx/a", "old"), (RECORD_FILE, "old")):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        (target / name).write_text(text, encoding="utf-8")
    with staged(target, "m") as fresh:
        (fresh / "onnx" / "more").mkdir(parents=True)
        for name in ("onnx/a", "onnx/more/b", RECORD_FILE):
            (fresh / name).write_text("new", encoding="utf-8")
    found = {path.relative_to(target).as_posix(): path.read_text() for path in target.rglob("*") if path.is_file()}
    assert found == {"old": "old", "onnx/a": "new", "onnx/more/b": "new", RECORD_FILE: "new"}


def test_whole_folder_is_replaced(tmp_path: Path) -> None:
    """Nothing of the former model stays behind."""
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").touch()
    with staged(target, "m", whole=True) as fresh:
        (fresh / "new").touch()
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["new"]


@pytest.mark.parametrize("whole", [False, True])
def test_failure_leaves_the_former_folder(tmp_path: Path, whole: bool) -> None:
    """What was made before the error is gone, and the folder is as it was."""
    target = tmp_path / "model"
    target.mkdir()
    (target / "old").touch()
    with pytest.raises(ModelNotWritten, match="No such file"), staged(target, "m", whole=whole) as fresh:
        (fresh / "nowhere").rename(fresh / "new")
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["old"]
    assert list(tmp_path.iterdir()) == [target]


def test_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """A file where a folder must be is one sentence."""
    (tmp_path / "file").touch()
    with pytest.raises(ModelNotWritten, match=r"file.*choose another folder"), staged(tmp_path / "file" / "model", "m"):
        pass


def test_links_become_files(tmp_path: Path) -> None:
    """The hub client's cache holds links; a folder of one's own holds files."""
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "onnx").mkdir(parents=True)
    target.mkdir()
    (tmp_path / "blob").write_text("x", encoding="utf-8")
    (source / "onnx" / "a").symlink_to(tmp_path / "blob")
    copy_into(source, target, ["onnx/a", "missing"])
    assert (target / "onnx" / "a").read_text(encoding="utf-8") == "x"
    assert not (target / "onnx" / "a").is_symlink()


@pytest.mark.parametrize("limit_bytes", [300, 3_000])
def test_no_space_while_quantizing_leaves_nothing(tmp_path: Path, limit_bytes: int) -> None:
    """A write that the system refuses ends in one sentence with the exit code 1, and in no file."""
    folder = make_tiny_folder(tmp_path / "model")
    before = sorted(tmp_path.rglob("*"))
    program = (
        "import resource, sys\nfrom retrieval.cli.main import execute\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit_bytes}, {limit_bytes}))\n"
        f"sys.exit(execute(['models', 'quantize', {str(folder)!r}], {{}}))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, cwd=ROOT,
        env={"PYTHONPATH": f"{ROOT}:{ROOT / 'proto'}", "PYTHONDONTWRITEBYTECODE": "1"}, check=False,
    )  # fmt: skip
    assert ended.returncode == 1, ended.stderr
    assert ended.stderr.startswith("headrace: model ")
    assert ended.stderr.count("\n") == 1
    assert "cannot be written" in ended.stderr
    assert sorted(tmp_path.rglob("*")) == before
