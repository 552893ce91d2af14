"""`headrace backup` and `headrace restore` as a person runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from indexers.catalog import EmbeddedCatalog
from indexers.folder_lock import FolderLock
from indexers.models import OneModel
from indexers.options import IndexOptions, ShardKind
from indexers.types import CollectionKey
from retrieval.cli.main import execute
from tests.contract.index_places import MODEL
from tests.fakes.encoded import encoded


@pytest.fixture(autouse=True)
async def _data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Gives each test a data folder with two collections, in the present folder."""
    monkeypatch.chdir(tmp_path)
    catalog = EmbeddedCatalog(
        tmp_path / "data", OneModel(MODEL), IndexOptions(kind=ShardKind.EXACT, build_automatically=False)
    )
    for tenant in ("default", "other"):
        index = await catalog.create(CollectionKey(tenant, "docs"), {}, "")
        await index.upsert([encoded("a", ["some words", "more words"])])
    await catalog.close()


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    """Runs a command and returns its exit code, what it printed, and what it said on standard error."""
    code = execute(arguments, {})
    said = capsys.readouterr()
    return code, said.out, said.err


def test_backup_and_restore_say_what_they_moved(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """All collections of a data folder go into a backup, also while it is held; one comes back by another name."""
    held = FolderLock(tmp_path / "data")
    code, out, _ = run(capsys, "backup", "b", "--json")
    held.release()
    assert code == 0
    assert [(one["tenant"], one["documents"], one["chunks"]) for one in json.loads(out)["collections"]] == [
        ("default", 1, 2),
        ("other", 1, 2),
    ]
    code, out, err = run(capsys, "restore", "b", "--tenant", "third", "--any-model")
    assert (code, "one by one" in err) == (2, True)
    run(capsys, "backup", "mine", "--tenant", "other")
    code, out, _ = run(capsys, "restore", "mine", "--as", "copy", "--any-model", "--json")
    assert code == 0
    assert [(one["tenant"], one["name"]) for one in json.loads(out)["collections"]] == [("other", "copy")]
    assert (tmp_path / "data" / "other" / "copy" / "record.sqlite").is_file()


def test_restore_refuses_in_a_sentence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """What is there, another model's vectors, a locked folder, another kind and no backup are each said plainly."""
    assert run(capsys, "backup", "b", "--tenant", "default")[0] == 0
    code, _, err = run(capsys, "restore", "b", "--any-model")
    assert (code, "exists already" in err) == (1, True)
    code, _, err = run(capsys, "restore", "b", "--replace")
    assert (code, "the configured model is" in err) == (1, True)
    held = FolderLock(tmp_path / "data")
    code, _, err = run(capsys, "restore", "b", "--any-model", "--replace")
    held.release()
    assert (code, "in use by" in err) == (1, True)
    code, _, err = run(capsys, "restore", "b", "--set", "index.kind=qdrant")
    assert (code, "'embedded'" in err) == (2, True)
    assert run(capsys, "restore", "nothing")[0] == 1
    assert run(capsys, "restore", "b", "--collection", "none")[0] == 1
    assert run(capsys, "backup", "b")[0] == 1
    assert run(capsys, "restore", "b", "--any-model", "--replace")[0] == 0
