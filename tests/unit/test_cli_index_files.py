"""Which files are read, under which names, and how far the reading is."""

from __future__ import annotations

from pathlib import Path

import pytest

from indexers.parsing.parsed import ParsedDocument, ParseFailure, SkippedFile
from retrieval.cli.index_files import Files


@pytest.fixture
def folder(tmp_path):
    """A folder with files of several kinds."""
    for name in ("b.md", "a/c.txt", ".hidden.md", ".git/config.txt", "picture.png"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"Text of {name}.", encoding="utf-8")
    return tmp_path


def documents(files):
    """Returns the documents of an iteration."""
    return [item.document for item in files if isinstance(item, ParsedDocument)]


def test_files_are_named_relative_to_the_folder_in_order(folder):
    """Names are relative and stable; what is hidden is left out; what is not read is named."""
    files = Files([folder], {})
    items = list(files)
    assert [item.document.document_id for item in items if isinstance(item, ParsedDocument)] == ["b.md", "a/c.txt"]
    assert [item.path for item in items if isinstance(item, SkippedFile)] == ["picture.png"]
    assert files.roots == (f"{folder.as_uri()}/",)


def test_file_given_by_itself_is_its_own_root(folder):
    """A file may be given; it is named by its last part."""
    files = Files([folder / "a" / "c.txt"], {})
    [document] = documents(files)
    assert (document.document_id, document.source_uri) == ("c.txt", (folder / "a/c.txt").as_uri())
    assert files.roots == ((folder / "a/c.txt").as_uri(),)


def test_file_given_twice_is_read_once(folder):
    """Paths may overlap; each file is one document, named by the path that came first."""
    files = Files([folder, folder / "a" / "c.txt", folder], {})
    assert [document.document_id for document in documents(files)] == ["b.md", "a/c.txt"]
    assert files.total_bytes == sum(path.stat().st_size for path in visible(folder))


def test_file_given_by_itself_that_is_not_read_fails(folder):
    """A file of another kind is skipped in a folder, and a failure when somebody named it."""
    [item] = Files([folder / "picture.png"], {})
    assert isinstance(item, ParseFailure)
    assert "not read" in item.reason


def test_missing_path_fails_by_itself(folder):
    """A path that is not there is one failure, and no root, so that nothing is removed under it."""
    files = Files([folder / "missing", folder], {})
    items = list(files)
    assert [item.path for item in items if isinstance(item, ParseFailure)] == [str(folder / "missing")]
    assert len(files.roots) == 1
    assert len(documents(files)) == 2


def test_metadata_is_added_and_stronger_than_a_documents_own(tmp_path):
    """What is given for all documents is added to each, and wins."""
    (tmp_path / "rows.jsonl").write_text('{"id": "1", "text": "A row.", "metadata": {"a": "own", "b": "own"}}\n')
    [document] = documents(Files([tmp_path], {"a": "given", "c": "given"}))
    assert document.metadata == {"a": "given", "b": "own", "c": "given"}


def test_done_bytes_grow_to_the_total(folder):
    """While the files are read, the bytes done never shrink, and end at the total."""
    files = Files([folder], {})
    seen = [files.done_bytes() for _ in files]
    assert seen == sorted(seen)
    assert files.done_bytes() == files.total_bytes == sum(path.stat().st_size for path in visible(folder))


def visible(folder: Path) -> list[Path]:
    """Returns the files that are not hidden."""
    return [path for path in folder.rglob("*.*") if path.is_file() and "/." not in path.as_posix()]
